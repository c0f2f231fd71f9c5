import type { Basis } from '../../basis.ts'
import { actors } from '../../core/audit.ts'
import { Fault } from '../../core/fault.ts'
import type { Counter } from '../../core/metrics.ts'
import type { Caller } from '../../core/scopes.ts'
import type { Transaction } from '../../store/database.ts'
import type { Accounts } from '../accounts.ts'
import type { Guess, GuessCounter, GuessTarget } from './guesses.ts'
import type { KnownNetworks } from './known-networks.ts'
import { folded, type LoginRow, type Logins } from './logins.ts'
import type { SignInInput } from '../model.ts'
import type { PasswordHashes } from './password-hash.ts'
import { isAppCode, type SecondFactor } from './second-factor.ts'
import type { SessionRow, Sessions } from './sessions.ts'

export interface SignInDeps extends Pick<Basis, 'metrics' | 'database' | 'clock' | 'log' | 'audit' | 'account'> {
  accounts: Accounts
  logins: Logins
  hashes: PasswordHashes
  factor: SecondFactor
  guesses: GuessCounter
  networks: KnownNetworks
  sessions: Sessions
}

type Visitor = Pick<Caller, 'ip' | 'user_agent'>

/** Signing in with a password and a second factor. */
export class SignIn {
  readonly #deps: SignInDeps
  readonly #counted: Counter<'result'>

  constructor(deps: SignInDeps) {
    this.#deps = deps
    this.#counted = deps.metrics.counter(
      'pillarbox_sign_ins_total',
      'Sign-in attempts by result: right, or the error code, such as invalid_credentials and too_many_attempts',
      ['result'],
    )
  }

  /**
   * Starts a session. Throws Fault 401: `invalid_credentials`, whether the address is unknown or the password wrong, with the same work;
   * `totp_required` and `invalid_totp` once the password was right.
   */
  async enter(visitor: Visitor, input: SignInInput): Promise<SessionRow & { token: string }> {
    try {
      const session = await this.#try(visitor, input)
      this.#counted.labels('right').inc()
      return session
    } catch (error) {
      if (error instanceof Fault) this.#counted.labels(error.code ?? error.type).inc()
      throw error
    }
  }

  async #try(visitor: Visitor, input: SignInInput): Promise<SessionRow & { token: string }> {
    const { log, accounts, logins } = this.#deps
    const found = await logins.byEmail(input.email)
    const login = found && accounts.exists(found.account_id) ? found : undefined
    const target = await this.#target(visitor, input, login)
    const guess = await this.#begin(visitor, target, login)
    try {
      const session = await this.#enter(visitor, input, login, target)
      await guess.right()
      log.info({ account_id: session.account_id, session_id: session.id, address: visitor.ip }, 'signed in')
      return session
    } catch (error) {
      if (!isWrong(error)) await guess.undone()
      // the address field may contain a password by mistake
      if (error instanceof Fault) {
        log.warn({ address: visitor.ip, why: error.code }, 'sign-in refused')
        this.#recordFailure(visitor, login, error)
      }
      throw error
    }
  }

  async #begin(visitor: Visitor, target: GuessTarget, login: LoginRow | undefined): Promise<Guess> {
    try {
      return await this.#deps.guesses.begin(target, visitor.ip)
    } catch (error) {
      if (error instanceof Fault) this.#recordFailure(visitor, login, error)
      throw error
    }
  }

  /** Attempts at addresses that no account has are in the log of the operator. */
  #recordFailure({ ip }: Visitor, login: LoginRow | undefined, { code, type }: Fault): void {
    const { audit, account } = this.#deps
    audit.collect({
      account_id: login?.account_id ?? account,
      actor: actors.anonymous,
      client: null,
      address: ip,
      action: 'sign_in.failed',
      target: login?.id ?? null,
      identity_id: null,
      detail: { code: code ?? type },
    })
  }

  /**
   * The counter of this attempt. One with a recovery code, which cannot be guessed, has its own counter: attackers who exhaust the guesses of an
   * account do not lock out its owner.
   */
  async #target(visitor: Visitor, input: SignInInput, login: LoginRow | undefined): Promise<GuessTarget> {
    const { database, factor, networks } = this.#deps
    const person = login?.id ?? ''
    const code = input.totp ?? input.recovery_code
    const known = await networks.has(person, visitor.ip)
    const proven = code !== undefined && !isAppCode(code) && (await factor.holdsRecoveryCode(database, person, code))
    return { name: `${proven ? 'recovery ' : ''}${folded(input.email)}`, exists: login !== undefined, known }
  }

  async #enter(
    visitor: Visitor,
    input: SignInInput,
    login: LoginRow | undefined,
    target: GuessTarget,
  ): Promise<SessionRow & { token: string }> {
    const { database, logins, hashes, networks, sessions } = this.#deps
    const fits = await hashes.fits(input.password, login?.password)
    if (!login || !fits) throw wrongCredentials()
    const better = hashes.isOutdated(login.password) ? await hashes.hash(input.password) : undefined
    const code = input.totp ?? input.recovery_code
    const codeGuess = await this.#codeGuess(login, code, target)
    try {
      const session = await database.transaction(async (tx) => {
        const now = await logins.of(login.id, tx)
        // changed during the computation
        if (now?.password !== login.password) throw wrongCredentials()
        await this.#requireFactor(tx, now, code)
        if (better !== undefined) await logins.rehash(tx, login.id, better)
        await networks.note(tx, login.id, visitor.ip)
        const opened = await sessions.open(tx, now, visitor)
        await this.#recordSession(tx, opened, visitor, login.confirmed_at !== null)
        return opened
      })
      await codeGuess?.right()
      return session
    } catch (error) {
      if (!isWrong(error)) await codeGuess?.undone()
      throw error
    }
  }

  #recordSession(
    tx: Transaction,
    { id, account_id, person_id }: SessionRow,
    { ip }: Visitor,
    second_factor: boolean,
  ): Promise<void> {
    return this.#deps.audit.append(tx, {
      account_id,
      actor: person_id,
      client: null,
      address: ip,
      action: 'session.created',
      target: id,
      identity_id: null,
      detail: { second_factor },
    })
  }

  async #codeGuess({ id, confirmed_at }: LoginRow, code: string | undefined, target: GuessTarget): Promise<Guess | undefined> {
    if (confirmed_at === null || code === undefined || !isAppCode(code)) return undefined
    return this.#deps.guesses.beginCode({ ...target, name: id })
  }

  async #requireFactor(tx: Transaction, login: LoginRow, code: string | undefined): Promise<void> {
    const { factor, clock } = this.#deps
    if (login.confirmed_at === null) return
    if (code === undefined) {
      throw new Fault('unauthorized', 'A second factor is required: send totp, the code of your app, or a recovery code.', {
        code: 'totp_required',
        param: 'totp',
      })
    }
    if (await factor.takeAnyCode(tx, login, code, clock.now())) return
    throw new Fault('unauthorized', 'This code is wrong, or was used before. Each code works once.', {
      code: 'invalid_totp',
      param: 'totp',
    })
  }
}

function wrongCredentials(): Fault {
  return new Fault('unauthorized', 'The e-mail address or the password is wrong.', { code: 'invalid_credentials' })
}

/** True if it counts as a wrong guess: a missing code, or a failure on our side, does not. */
function isWrong(error: unknown): boolean {
  return error instanceof Fault && (error.code === 'invalid_credentials' || error.code === 'invalid_totp')
}
