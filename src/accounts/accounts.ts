import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { conflict, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import { sql } from '../store/database.ts'
import type { State, StateFile } from '../store/state.ts'
import { folded, type Logins } from './sign-in/logins.ts'
import { type Account, Email, Name } from './model.ts'
import type { PasswordHashes } from './sign-in/password-hash.ts'
import { requirePassword } from './sign-in/password-rules.ts'
import type { SecondFactor } from './sign-in/second-factor.ts'
import type { Sessions } from './sign-in/sessions.ts'

interface Deps extends Pick<Basis, 'database' | 'clock'> {
  state: Pick<StateFile, 'data' | 'update'>
  logins: Logins
  hashes: PasswordHashes
  factor: SecondFactor
  sessions: Sessions
}

type Entry = State['accounts'][number]

/** The accounts of the box: the operator's list, and the login of each account. */
export class Accounts {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  exists(id: string): boolean {
    return this.#entry(id) !== undefined
  }

  /** The caller's own account. Requires a key that is not bound to one identity. */
  async get(caller: Caller): Promise<Account> {
    if (caller.identity_id !== null) throw notFound('account')
    return this.of(caller.account_id)
  }

  /** Throws Fault 404 for an account that is not on the operator's list. */
  async of(id: string): Promise<Account> {
    const entry = this.#entry(id)
    if (!entry) throw notFound('account')
    return this.#toAccount(entry)
  }

  /** Every account, oldest first, for the operator. */
  list(): Promise<Account[]> {
    return Promise.all(this.#deps.state.data.accounts.map((entry) => this.#toAccount(entry)))
  }

  /** Creates an account with a login. Throws Fault when the name or address is taken, or the password is too weak. */
  async add(input: { name: string; email: string; password: string }): Promise<Account> {
    const { clock, state, logins } = this.#deps
    const name = checked(Name, input.name, 'name')
    const email = checked(Email, input.email, 'email')
    const entry = { id: newId('acct'), name, created_at: iso(clock.now()) }
    requirePassword(input.password, email)
    await logins.requireFree(email, entry.id)
    await state.update(({ accounts }) => {
      if (accounts.some((other) => folded(other.name) === folded(name))) {
        throw conflict(`There is an account named ${name}.`, { param: 'name' })
      }
      accounts.push(entry)
    })
    return this.#setLogin(entry, email, input.password, false)
  }

  /**
   * Resets a login for the operator: sets a new password and can remove the second factor. `who` is an id, a name or an address. Ends every
   * session of the account.
   */
  async setPassword(input: { who: string; email?: string; password: string; removeSecondFactor: boolean }): Promise<Account> {
    const entry = await this.#find(input.who)
    const before = await this.#deps.logins.of(entry.id)
    const email = input.email === undefined ? before?.email : checked(Email, input.email, 'email')
    if (email === undefined) throw invalid('email', `${entry.name} has no e-mail address yet: provide one.`, 'missing')
    requirePassword(input.password, email)
    return this.#setLogin(entry, email, input.password, input.removeSecondFactor)
  }

  async #setLogin(entry: Entry, email: string, password: string, removeSecondFactor: boolean): Promise<Account> {
    const { database, clock, logins, hashes, factor, sessions } = this.#deps
    const hash = await hashes.hash(password)
    await database.transaction(async (tx) => {
      await logins.write(tx, { account_id: entry.id, email, password: hash, changed_at: iso(clock.now()) })
      if (removeSecondFactor) await factor.clear(tx, entry.id)
      await sessions.endAll(tx, entry.id, null)
      return entry
    })
    return this.#toAccount(entry)
  }

  async #find(who: string): Promise<Entry> {
    const { state, logins } = this.#deps
    const login = await logins.byEmail(who)
    const found = state.data.accounts.find(
      ({ id, name }) => id === who || id === login?.account_id || folded(name) === folded(who),
    )
    if (!found) throw notFound('account')
    return found
  }

  async #toAccount({ id, name, created_at }: Entry): Promise<Account> {
    const { database, logins } = this.#deps
    const login = await logins.of(id)
    const left = await database.get<{ left: number }>(sql`SELECT count(*) AS left FROM recovery_codes WHERE account_id = ${id}`)
    const totp_enabled = (login?.confirmed_at ?? null) !== null
    return {
      id,
      name,
      email: login?.email ?? null,
      password_set: login !== undefined,
      totp_enabled,
      recovery_codes_left: totp_enabled ? (left?.left ?? 0) : 0,
      created_at,
    }
  }

  #entry(id: string): Entry | undefined {
    return this.#deps.state.data.accounts.find((entry) => entry.id === id)
  }
}

function checked(schema: typeof Name, text: string, param: string): string {
  const result = schema.safeParse(text)
  if (result.success) return result.data
  throw invalid(param, `${param} ${result.error.issues[0]!.message}.`, 'invalid_value')
}
