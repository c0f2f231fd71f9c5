import type { Config } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import type { Cursors } from '../core/cursor.ts'
import type { Log } from '../core/log.ts'
import type { Metrics } from '../core/metrics.ts'
import type { Seal } from '../core/seal.ts'
import type { EventLog } from '../events/log.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Part } from '../part.ts'
import type { Database } from '../store/database.ts'
import type { StateFile } from '../store/state.ts'
import { accountRoutes } from './account-routes.ts'
import { Accounts } from './accounts.ts'
import { Guesses } from './guesses.ts'
import { Holders } from './holders.ts'
import { keyCount } from './key-count.ts'
import { Keys } from './keys.ts'
import { KnownNetworks } from './known-networks.ts'
import { Logins, sealedFactors } from './logins.ts'
import { operatorRoutes } from './operator-routes.ts'
import { PasswordHashes } from './password-hash.ts'
import { People } from './people.ts'
import type { Plan } from './plan.ts'
import { planRoutes } from './plan-routes.ts'
import { routes } from './routes.ts'
import { SecondFactor } from './second-factor.ts'
import type { CodeAt } from './second-factor.ts'
import { sessionRoutes } from './session-routes.ts'
import { Sessions } from './sessions.ts'
import { Setup } from './setup.ts'
import { setupRoutes } from './setup-routes.ts'
import { SignIn } from './sign-in.ts'

interface Needs {
  config: Config
  database: Database
  events: EventLog
  clock: Clock
  cursors: Cursors
  log: Log
  metrics: Metrics
  seal: Seal
  state: StateFile
  codeAt: CodeAt
  plan: Plan
  publicUrl: () => string
}

/** Accounts: their API keys, and the people who sign in. */
export class AccountPart implements Part {
  readonly name = 'account'
  readonly routes: AnyRoute[]
  readonly sealed = [sealedFactors]
  readonly jobs = [{ name: 'note-key-use', schedule: '*/20 * * * * *', run: () => this.#tidy() }]
  readonly keys: Keys
  readonly sessions: Sessions
  readonly accounts: Accounts
  /** Keys and sessions alike. */
  readonly holders: Holders
  readonly setup: Setup
  readonly #plan: Plan

  constructor(needs: Needs) {
    const { database, clock, cursors, config, seal, state, codeAt } = needs
    this.#plan = needs.plan
    this.#plan.counts('api_keys', keyCount(clock))
    this.keys = new Keys({ ...needs, rateLimit: config.http.rate_limit })
    const exists = (id: string): boolean => state.data.accounts.some((account) => account.id === id)
    this.sessions = new Sessions({ database, clock, cursors, settings: config.http, exists })
    this.holders = new Holders(this.keys, this.sessions)
    const rows = {
      logins: new Logins(database),
      hashes: new PasswordHashes(),
      factor: new SecondFactor(seal, codeAt),
      sessions: this.sessions,
    }
    this.accounts = new Accounts({ ...needs, ...rows })
    const parts = {
      ...needs,
      ...rows,
      accounts: this.accounts,
      keys: this.keys,
      guesses: new Guesses(clock),
      networks: new KnownNetworks(database, clock),
    }
    const signIn = new SignIn(parts)
    this.setup = new Setup(parts)
    this.routes = [
      ...routes(this.keys),
      ...sessionRoutes({ accounts: this.accounts, sessions: this.sessions, signIn }),
      ...planRoutes(this.#plan),
      ...accountRoutes(this.accounts, new People(parts)),
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
