import { conflict, Fault, notFound } from '../core/fault.ts'
import type { Caller, Role } from '../core/scopes.ts'
import type { Page, Paging } from '../core/shapes.ts'
import { page } from '../store/page.ts'
import { sql, type Transaction } from '../store/database.ts'
import type { Person, PersonRemoved } from './model.ts'
import type { LoginRow } from './sign-in/logins.ts'
import type { SignInDeps } from './sign-in/sign-in.ts'
import type { Basis } from '../basis.ts'
import type { Keys } from './keys.ts'

interface Deps extends Pick<SignInDeps, 'database' | 'log' | 'logins' | 'factor' | 'sessions'>, Pick<Basis, 'cursors'> {
  keys: Pick<Keys, 'origins'>
}

/** The people of an account. A change of a role, or a removal, ends their sessions; one owner always stays. */
export class People {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  list(caller: Caller, paging: Paging): Promise<Page<Person>> {
    if (caller.identity_id !== null) throw notFound('account')
    return page<LoginRow, Person>(this.#deps.database, this.#deps.cursors, paging, {
      name: `people ${caller.account_id}`,
      account: caller.account_id,
      from: sql`logins`,
      where: sql`account_id = ${caller.account_id}`,
      present: toPerson,
    })
  }

  /** Throws Fault 403, code `session_required`, for a key; 409, code `last_owner`. */
  async changeRole(caller: Caller, id: string, role: Role): Promise<Person> {
    const { database, log, sessions } = this.#deps
    requireNoKey(caller)
    return database.transaction(async (tx) => {
      const person = await this.#find(tx, caller, id)
      if (person.role === role) return toPerson(person)
      await this.#requireAnotherOwner(tx, person)
      await tx.run(sql`UPDATE logins SET role = ${role} WHERE id = ${id}`)
      if (role !== 'owner') await this.#endInvitations(tx, person)
      await sessions.endAll(tx, person, null)
      tx.afterCommit(() => log.info({ person: id, role, by: caller.person?.id ?? 'operator' }, 'role changed'))
      return toPerson({ ...person, role })
    })
  }

  /** Throws Fault as `changeRole` does. */
  async remove(caller: Caller, id: string): Promise<PersonRemoved> {
    const { database, log, factor, sessions } = this.#deps
    requireNoKey(caller)
    return database.transaction(async (tx) => {
      const person = await this.#find(tx, caller, id)
      await this.#requireAnotherOwner(tx, person)
      await this.#endInvitations(tx, person)
      await sessions.endAll(tx, person, null)
      await factor.clear(tx, id)
      await tx.run(sql`DELETE FROM sign_in_networks WHERE person_id = ${id}`)
      await tx.run(sql`DELETE FROM logins WHERE id = ${id}`)
      tx.afterCommit(() => log.info({ person: id, by: caller.person?.id ?? 'operator' }, 'person removed'))
      return { id, deleted: true, email: person.email, role: person.role }
    })
  }

  async #find(tx: Transaction, caller: Caller, id: string): Promise<LoginRow> {
    await this.#deps.keys.origins.requireAdmitted(tx, caller)
    const person = await this.#deps.logins.of(id, tx)
    if (person?.account_id !== caller.account_id) throw notFound('person')
    return person
  }

  async #requireAnotherOwner(tx: Transaction, { id, account_id, role }: LoginRow): Promise<void> {
    if (role !== 'owner') return
    const other = await tx.get(sql`SELECT 1 FROM logins WHERE account_id = ${account_id} AND role = 'owner' AND id <> ${id}`)
    if (other) return
    throw conflict(
      'This is the last owner of the account, who cannot be removed or get another role. Make someone else an owner first.',
      {
        code: 'last_owner',
      },
    )
  }

  /** Whoever is no owner any more invites nobody, also not by a link made before. */
  async #endInvitations(tx: Transaction, { id, account_id }: LoginRow): Promise<void> {
    await tx.run(sql`DELETE FROM invitations WHERE account_id = ${account_id} AND created_by = ${id}`)
  }
}

export function toPerson({ id, email, role, confirmed_at, created_at }: LoginRow): Person {
  return { id, email, role, totp_enabled: confirmed_at !== null, created_at }
}

/** Throws Fault 403 for a key: a person it let in would outlive it. The operator on the machine of the box may. */
export function requireNoKey({ key_id }: Caller): void {
  if (key_id === null) return
  throw new Fault(
    'forbidden',
    'Only a signed-in owner changes who the people of an account are; a key cannot, regardless of its scopes. Sign in (POST /v1/session), and send the ' +
      'session cookie instead of a key.',
    { code: 'session_required' },
  )
}
