import { iso } from '../../core/clock.ts'
import { conflict, Fault, invalid, notFound } from '../../core/fault.ts'
import { type Caller, requireLasting } from '../../core/scopes.ts'
import { requireSession } from '../granting.ts'
import type { Reader } from '../../store/database.ts'
import type { Guess, GuessTarget } from './guesses.ts'
import type { Keys } from '../keys.ts'
import type { LoginRow } from './logins.ts'
import type { Account, FactorProof, PasswordInput, SecondFactorSetup } from '../model.ts'
import { requirePassword } from './password-rules.ts'
import { isAppCode, keyUri } from './second-factor.ts'
import type { SignInDeps } from './sign-in.ts'

interface Deps extends Omit<SignInDeps, 'metrics'> {
  keys: Pick<Keys, 'origins'>
}

/** Changes to the login of a person. Each ends every other session of theirs. */
export class LoginChanges {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * Throws Fault 403, code `wrong_password`, or `setup_link_required` for a key while there is no password; 400 for a password against the
   * rules; 409 for an address of another account.
   */
  async changePassword(caller: Caller, input: PasswordInput): Promise<Account> {
    const { database, clock, log, accounts, logins, hashes, sessions, keys } = this.#deps
    const { id } = await accounts.get(caller)
    requireLasting(caller, 'change how users sign in')
    const before = await this.#own(caller)
    if (before) await this.#requirePassword(caller, before, input.current_password, 'current_password')
    else requireNoKey(caller)
    const email = input.email ?? before?.email
    if (email === undefined) throw invalid('email', 'email is required the first time: it is used to sign in.', 'missing')
    requirePassword(input.password, email)
    const password = await hashes.hash(input.password)
    await database.transaction(async (tx) => {
      await keys.origins.requireAdmitted(tx, caller)
      const now = await this.#own(caller, tx)
      if (now?.password !== before?.password) throw changedMeanwhile()
      const at = iso(clock.now())
      const login = now
        ? await logins.change(tx, now.id, { email, password, at })
        : await logins.insert(tx, { account_id: id, role: 'owner', email, password, at })
      await sessions.endAll(tx, login, caller.session_id)
    })
    log.info({ ...line(caller), email_changed: email !== before?.email }, 'password changed')
    return accounts.get(caller)
  }

  /**
   * Creates a secret and recovery codes, returned only once; they take effect when confirmed. Requires the password, as a session alone may
   * be stolen. Throws Fault 403, code `wrong_password`; 409, code `totp_enabled`, when there is a confirmed second factor.
   */
  async beginFactor(caller: Caller, password: string): Promise<SecondFactorSetup> {
    const { database, factor, keys } = this.#deps
    requirePerson(caller)
    const login = await this.#login(caller)
    await this.#requirePassword(caller, login, password, 'password')
    return database.transaction(async (tx) => {
      await keys.origins.requireAdmitted(tx, caller)
      const now = await this.#login(caller, tx)
      if (now.password !== login.password) throw changedMeanwhile()
      if (now.confirmed_at !== null) {
        throw conflict('A second factor exists already. Remove it first: DELETE /v1/account/totp.', { code: 'totp_enabled' })
      }
      const made = await factor.begin(tx, now)
      return { ...made, uri: keyUri(login.email, made.secret) }
    })
  }

  /** Throws Fault 403, code `wrong_code`; 409 when there is nothing to confirm. */
  async confirmFactor(caller: Caller, code: string): Promise<Account> {
    const { database, clock, log, accounts, factor, sessions, keys } = this.#deps
    requirePerson(caller)
    const before = await this.#login(caller)
    await this.#counted(caller, before, 'code', () =>
      database.transaction(async (tx) => {
        await keys.origins.requireAdmitted(tx, caller)
        const login = await this.#login(caller, tx)
        if (!login.second_factor || login.confirmed_at !== null) {
          throw conflict('No second factor is waiting for confirmation. Start with POST /v1/account/totp.', {
            code: 'nothing_to_confirm',
          })
        }
        const now = clock.now()
        if (!(await factor.takeCode(tx, login, code, now))) throw wrongCode()
        await factor.confirm(tx, login.id, iso(now))
        await sessions.endAll(tx, login, caller.session_id)
      }),
    )
    log.info(line(caller), 'second factor added')
    return accounts.get(caller)
  }

  /**
   * Requires the password or a code (of the app, or for recovery). Throws Fault 403, code `wrong_password` or `wrong_code`; 404 without a
   * second factor.
   */
  async removeFactor(caller: Caller, proof: FactorProof): Promise<{ id: string; deleted: true }> {
    const { database, log, factor, sessions, keys } = this.#deps
    requirePerson(caller)
    const login = await this.#login(caller)
    if (!login.second_factor) throw notFound('second factor')
    if (proof.password === undefined && proof.code === undefined) {
      throw invalid('password', 'Send either the password or a code of the second factor.', 'missing')
    }
    if (proof.password !== undefined) await this.#requirePassword(caller, login, proof.password, 'password')
    else await this.#requireCode(caller, login, proof.code!)
    await database.transaction(async (tx) => {
      await keys.origins.requireAdmitted(tx, caller)
      const now = await this.#login(caller, tx)
      if (now.password !== login.password) throw changedMeanwhile()
      await factor.clear(tx, login.id)
      await sessions.endAll(tx, login, caller.session_id)
    })
    log.info(line(caller), 'second factor removed')
    return { id: login.account_id, deleted: true }
  }

  /** Throws Fault 403, code `wrong_password`, unless it is that of the caller. */
  async requirePassword(caller: Caller, password: string | undefined): Promise<void> {
    await this.#requirePassword(caller, await this.#login(caller), password, 'password')
  }

  /** The login of the person; for a key or the operator that of the first owner. */
  #own({ person, account_id }: Caller, reader?: Reader): Promise<LoginRow | undefined> {
    const { logins } = this.#deps
    return person ? logins.of(person.id, reader) : logins.ofOwner(account_id, reader)
  }

  async #login(caller: Caller, reader?: Reader): Promise<LoginRow> {
    if (!reader) await this.#deps.accounts.get(caller)
    const login = await this.#own(caller, reader)
    if (login) return login
    throw conflict('This account has no password yet. Set one first: POST /v1/account/password.', { code: 'no_password' })
  }

  async #requirePassword(caller: Caller, login: LoginRow, password: string | undefined, param: string): Promise<void> {
    if (password === undefined) throw invalid(param, `${param} is required: the account has a password.`, 'missing')
    await this.#counted(caller, login, 'password', async () => {
      if (await this.#deps.hashes.fits(password, login.password)) return
      throw new Fault('forbidden', 'The password is wrong.', { code: 'wrong_password', param })
    })
  }

  async #requireCode(caller: Caller, login: LoginRow, code: string): Promise<void> {
    const { database, clock, factor, guesses } = this.#deps
    await this.#counted(
      caller,
      login,
      'code',
      () =>
        database.transaction(async (tx) => {
          const now = await this.#login(caller, tx)
          if (!(await factor.takeAnyCode(tx, now, code, clock.now()))) throw wrongCode()
        }),
      (target) => (isAppCode(code) ? guesses.beginCode({ ...target, name: login.id }) : undefined),
    )
  }

  /**
   * Counts guesses, so that a holder of a session or key cannot find the password by trying. A right code does not reset wrong passwords: a
   * session can set up a second factor of its own.
   */
  async #counted(
    caller: Caller,
    login: LoginRow,
    what: 'password' | 'code',
    work: () => Promise<void>,
    also?: (target: GuessTarget) => Guess | Promise<Guess> | undefined,
  ): Promise<void> {
    const { guesses, networks } = this.#deps
    const known = await networks.has(login.id, caller.ip)
    const target = { name: `${what} ${login.id}`, exists: true, known }
    const guess = await guesses.begin(target, caller.ip)
    let second: Guess | undefined
    try {
      second = await also?.(target)
      await work()
      await guess.right()
      await second?.right()
    } catch (error) {
      const wrong = error instanceof Fault && error.type === 'forbidden'
      if (wrong) this.#deps.log.warn({ ...line(caller), why: error.code }, 'password or code rejected')
      else for (const one of [guess, second]) await one?.undone()
      throw error
    }
  }
}

/** A signed-in person has given the second factor, if there is one: a confirmation ends all sessions but the one that gave its code. */
function requirePerson(caller: Caller): void {
  requireSession(caller, 'Only a signed-in user can change the second factor; a key cannot, regardless of its scopes.')
}

/**
 * A password outlives the key that sets it, even when the key is revoked: so the first one is set by a person, or by the operator on the
 * machine.
 */
function requireNoKey({ key_id }: Caller): void {
  if (key_id === null) return
  throw new Fault(
    'forbidden',
    'A key cannot set the first password of an account. Use its one-time link, which the first start printed; the operator creates another on the ' +
      'machine of the box: pillarbox account setup-link.',
    { code: 'setup_link_required' },
  )
}

function line({ account_id, session_id, key_id, ip }: Caller): Record<string, unknown> {
  return { account_id, session_id, key_id, address: ip }
}

function wrongCode(): Fault {
  return new Fault('forbidden', 'This code is wrong, or was used before. Each code works once.', {
    code: 'wrong_code',
    param: 'code',
  })
}

function changedMeanwhile(): Fault {
  return conflict('The password was changed by another call at the same time.', { code: 'password_changed' })
}
