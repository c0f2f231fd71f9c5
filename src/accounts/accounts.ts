import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { conflict, Fault, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import { sql } from '../store/database.ts'
import type { OperatorState, State } from '../store/state.ts'
import { folded, type LoginRow, type Logins } from './sign-in/logins.ts'
import { type Account, Email, Name } from './model.ts'
import type { PasswordHashes } from './sign-in/password-hash.ts'
import { requirePassword } from './sign-in/password-rules.ts'
import type { SecondFactor } from './sign-in/second-factor.ts'
import type { Sessions } from './sign-in/sessions.ts'

interface Deps extends Pick<Basis, 'database' | 'clock'> {
  state: Pick<OperatorState, 'data' | 'update'>
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
    return this.of(caller.account_id, caller.person?.id)
  }

  /** As a person sees it, by default its first owner. Throws Fault 404 for an account that is not on the operator's list. */
  async of(id: string, personId?: string): Promise<Account> {
    const entry = this.#entry(id)
    if (!entry) throw notFound('account')
    return this.#toAccount(entry, personId)
  }

  /** Every account, oldest first, for the operator. */
  list(): Promise<Account[]> {
    return Promise.all(this.#deps.state.data.accounts.map((entry) => this.#toAccount(entry)))
  }

  /** Creates an account with a login. Throws Fault when the name or address is taken, or the password is too weak. */
  async add(input: { name: string; email: string; password: string }): Promise<Account> {
    const { clock, state, logins, hashes } = this.#deps
    const name = checked(Name, input.name, 'name')
    const email = checked(Email, input.email, 'email')
    const entry = { id: newId('acct'), name, created_at: iso(clock.now()) }
    requirePassword(input.password, email)
    await logins.requireFree(email, '')
    const password = await hashes.hash(input.password)
    await state.update(({ accounts }) => {
      if (accounts.some((other) => folded(other.name) === folded(name))) {
        throw conflict(`There is an account named ${name}.`, { param: 'name' })
      }
      accounts.push(entry)
    })
    const set = this.#setLogin(entry, undefined, { email, password, removeSecondFactor: false })
    const person = await set.catch(async (error: unknown) => {
      await this.#removeUnlessStored(entry, error)
      throw error
    })
    return this.#toAccount(entry, person)
  }

  /** Takes an account without a login off the list again. After `storage_unsure` it may have one, and stays for the operator to look at. */
  async #removeUnlessStored({ id }: Entry, error: unknown): Promise<void> {
    if (error instanceof Fault && error.code === 'storage_unsure') return
    await this.#deps.state.update((state) => void (state.accounts = state.accounts.filter((entry) => entry.id !== id)))
  }

  /**
   * Resets a login for the operator: sets a new password and can remove the second factor. `who` is the id or address of a person, or the id or name
   * of an account, for its first owner. Ends every session of that person.
   */
  async setPassword(input: { who: string; email?: string; password: string; removeSecondFactor: boolean }): Promise<Account> {
    const { entry, login: before } = await this.#find(input.who)
    const email = input.email === undefined ? before?.email : checked(Email, input.email, 'email')
    if (email === undefined) throw invalid('email', `${entry.name} has no e-mail address yet: provide one.`, 'missing')
    requirePassword(input.password, email)
    const password = await this.#deps.hashes.hash(input.password)
    return this.#toAccount(entry, await this.#setLogin(entry, before, { ...input, email, password }))
  }

  /** Stores the login of a person, whose id it returns. `password` is its hash. */
  async #setLogin(
    entry: Entry,
    before: LoginRow | undefined,
    input: { email: string; password: string; removeSecondFactor: boolean },
  ): Promise<string> {
    const { database, clock, logins, factor, sessions } = this.#deps
    const { email, password, removeSecondFactor } = input
    const credentials = { email, password, at: iso(clock.now()) }
    return database.transaction(async (tx) => {
      const login = before
        ? await logins.change(tx, before.id, credentials)
        : await logins.insert(tx, { ...credentials, account_id: entry.id, role: 'owner' })
      if (removeSecondFactor) await factor.clear(tx, login.id)
      await sessions.endAll(tx, login, null)
      return login.id
    })
  }

  async #find(who: string): Promise<{ entry: Entry; login: LoginRow | undefined }> {
    const { state, logins } = this.#deps
    const named = (await logins.of(who)) ?? (await logins.byEmail(who))
    const entry = state.data.accounts.find(
      ({ id, name }) => id === who || id === named?.account_id || folded(name) === folded(who),
    )
    if (!entry) throw notFound('account')
    return { entry, login: named?.account_id === entry.id ? named : await logins.ofOwner(entry.id) }
  }

  async #toAccount({ id, name, created_at }: Entry, personId?: string): Promise<Account> {
    const { database, logins } = this.#deps
    const login = await (personId === undefined ? logins.ofOwner(id) : logins.of(personId))
    const left = await database.get<{ left: number }>(
      sql`SELECT count(*) AS left FROM recovery_codes WHERE person_id = ${login?.id ?? ''}`,
    )
    const stop = await database.get<{ stopped_at: string }>(sql`SELECT stopped_at FROM stopped_accounts WHERE account_id = ${id}`)
    const totp_enabled = (login?.confirmed_at ?? null) !== null
    return {
      id,
      name,
      email: login?.email ?? null,
      password_set: login !== undefined,
      totp_enabled,
      recovery_codes_left: totp_enabled ? (left?.left ?? 0) : 0,
      stopped_at: stop?.stopped_at ?? null,
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
