import type { Config } from '../config.ts'
import type { AnyRoute } from '../http/route.ts'
import type { ModuleBasis, Module } from '../module.ts'
import type { Queue } from '../queue/queue.ts'
import type { OperatorState } from '../store/state.ts'
import type { CronJob } from '../core/cron.ts'
import { accountRoutes } from './account-routes.ts'
import { Accounts } from './accounts.ts'
import { Guesses, SharedGuesses } from './sign-in/guesses.ts'
import { Holders } from './holders.ts'
import { keyCount } from './key-ancestry.ts'
import { Keys } from './keys.ts'
import { KnownNetworks } from './sign-in/known-networks.ts'
import { Logins, sealedFactors } from './sign-in/logins.ts'
import { operatorRoutes } from './operator-routes.ts'
import { type PasswordCost, PasswordHashes } from './sign-in/password-hash.ts'
import { Invitations } from './invitations.ts'
import { LoginChanges } from './sign-in/login-changes.ts'
import { People } from './people.ts'
import { peopleRoutes } from './people-routes.ts'
import type { Plan } from './plan.ts'
import { planRoutes, routes } from './routes.ts'
import { type CodeAt, SecondFactor } from './sign-in/second-factor.ts'
import { sessionRoutes, setupRoutes } from './sign-in/routes.ts'
import { Sessions } from './sign-in/sessions.ts'
import { Stops } from './stops.ts'
import { AccountSetup } from './sign-in/setup.ts'
import { SignIn } from './sign-in/sign-in.ts'

interface Deps extends ModuleBasis {
  state: OperatorState
  codeAt: CodeAt
  plan: Plan
  queue: Pick<Queue, 'wake'>
  /** The cost of one guess; for tests. */
  passwordCost?: PasswordCost | undefined
}

/** Accounts: their API keys, and their logins. */
export class AccountsModule implements Module {
  readonly name = 'account'
  readonly routes: AnyRoute[]
  readonly sealed = [sealedFactors]
  readonly jobs: CronJob[] = [
    { name: 'note-key-use', schedule: '*/20 * * * * *', everywhere: true, run: () => this.#tidy() },
    { name: 'sweep-keys', schedule: '52 * * * *', run: (signal?: AbortSignal) => this.keys.deletion.sweep(signal) },
    { name: 'sweep-invitations', schedule: '44 * * * *', run: () => this.#invitations.sweep() },
  ]
  readonly keys: Keys
  readonly sessions: Sessions
  readonly accounts: Accounts
  /** Keys and sessions alike. */
  readonly holders: Holders
  readonly setup: AccountSetup
  readonly #invitations: Invitations
  readonly #plan: Plan

  constructor(deps: Deps) {
    const { database, clock, cursors, config, seal, state, codeAt } = deps
    this.#plan = deps.plan
    this.#plan.counts('api_keys', keyCount(clock))
    this.keys = new Keys({ ...deps, rateLimit: config.http.rate_limit })
    const exists = (id: string): boolean => state.data.accounts.some((account) => account.id === id)
    this.sessions = new Sessions({ database, clock, cursors, settings: config.http, exists })
    this.holders = new Holders(this.keys, this.sessions)
    const rows = {
      logins: new Logins(database),
      hashes: new PasswordHashes({ cost: deps.passwordCost }),
      factor: new SecondFactor(seal, codeAt),
      sessions: this.sessions,
    }
    this.accounts = new Accounts({ ...deps, ...rows })
    const sharedGuesses = database.several ? new SharedGuesses(database, clock) : undefined
    if (sharedGuesses) this.jobs.push({ name: 'sweep-guesses', schedule: '31 * * * * *', run: () => sharedGuesses.sweep() })
    const shared = {
      ...deps,
      ...rows,
      accounts: this.accounts,
      keys: this.keys,
      guesses: sharedGuesses ?? new Guesses(clock),
      networks: new KnownNetworks(database, clock),
    }
    const signIn = new SignIn(shared)
    this.setup = new AccountSetup(shared)
    const changes = new LoginChanges(shared)
    this.#invitations = new Invitations({ ...shared, changes })
    this.routes = [
      ...routes(this.keys),
      ...sessionRoutes({ accounts: this.accounts, sessions: this.sessions, signIn }),
      ...planRoutes(this.#plan),
      ...accountRoutes(this.accounts, changes, new Stops(shared)),
      ...peopleRoutes(new People(shared), this.#invitations),
      ...setupRoutes(this.setup),
      ...operatorRoutes(this.accounts, cursors),
    ]
  }

  reload(config: Config): void {
    this.keys.reload(config.http.rate_limit)
    this.sessions.reload(config.http)
    this.#plan.reload(config.limits)
  }

  stop(): Promise<void> {
    return this.#tidy()
  }

  async #tidy(): Promise<void> {
    await this.keys.noteUse()
    await this.sessions.tidy()
  }
}
