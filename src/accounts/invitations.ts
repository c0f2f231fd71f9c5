import { randomBytes } from 'node:crypto'
import type { Basis } from '../basis.ts'
import { day, iso } from '../core/clock.ts'
import { conflict, Fault, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page, Paging } from '../core/shapes.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'
import { page } from '../store/page.ts'
import type { Keys } from './keys.ts'
import type { AcceptanceInput, Invitation, InvitationInput, InvitationLink, Person } from './model.ts'
import { requireNoKey, toPerson } from './people.ts'
import { keyHash } from './secret.ts'
import type { LoginChanges } from './sign-in/login-changes.ts'
import { folded } from './sign-in/logins.ts'
import { requirePassword } from './sign-in/password-rules.ts'
import type { SignInDeps } from './sign-in/sign-in.ts'

interface Deps
  extends Pick<SignInDeps, 'database' | 'clock' | 'log' | 'audit' | 'accounts' | 'logins' | 'hashes'>, Pick<Basis, 'cursors'> {
  publicUrl: () => string
  changes: Pick<LoginChanges, 'requirePassword'>
  keys: Pick<Keys, 'origins'>
}

interface InvitationRow extends Invitation {
  seq: number
  account_id: string
}

/** How long an invitation is valid, in milliseconds. */
const lifetime = 3 * day

/** People and open invitations of an account together. */
const maxPeople = 100

/** Links by which people join an account, each once. */
export class Invitations {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * Throws Fault 403, code `session_required` for a key, `wrong_password`; 409, code `email_taken`, `too_many_people`. An earlier invitation of the
   * same address to the account, in whatever case of its letters, ends.
   */
  async create(caller: Caller, { email, role, password }: InvitationInput): Promise<InvitationLink> {
    const { database, clock, log, logins, changes, keys, publicUrl } = this.#deps
    requireNoKey(caller)
    // a session alone may be stolen
    if (caller.person) await changes.requirePassword(caller, password)
    else if (password !== undefined) throw invalid('password', 'password is only for sessions.', 'invalid_value')
    const token = randomBytes(32).toString('base64url')
    const now = clock.now()
    const row: Invitation = {
      id: newId('inv'),
      email,
      role,
      created_by: caller.person?.id ?? null,
      created_at: iso(now),
      expires_at: iso(now + lifetime),
    }
    await database.transaction(async (tx) => {
      await keys.origins.requireAdmitted(tx, caller)
      await logins.requireFree(email, '', tx)
      const { account_id } = caller
      await dropEarlier(tx, account_id, email, row.created_at)
      await requireRoom(tx, account_id)
      await tx.run(
        sql`INSERT INTO invitations (id, account_id, email, role, hash, created_by, created_at, expires_at)
          VALUES (${row.id}, ${account_id}, ${email}, ${role}, ${keyHash(token)}, ${row.created_by}, ${row.created_at}, ${row.expires_at})`,
      )
      tx.afterCommit(() => log.info({ invitation: row.id, role, by: row.created_by ?? 'operator' }, 'person invited'))
      return row
    })
    // in the fragment, which browsers do not send, so that it is in no server's log
    const fragment = new URLSearchParams({ token, email })
    return { ...row, url: `${publicUrl()}/invitation#${fragment.toString()}` }
  }

  /** Those that can be accepted. */
  list(caller: Caller, paging: Paging): Promise<Page<Invitation>> {
    if (caller.identity_id !== null) throw notFound('account')
    const { database, cursors, clock } = this.#deps
    return page<InvitationRow, Invitation>(database, cursors, paging, {
      name: `invitations ${caller.account_id}`,
      account: caller.account_id,
      from: sql`invitations`,
      where: sql`account_id = ${caller.account_id}`,
      filters: [sql`expires_at > ${iso(clock.now())}`],
      present: ({ id, email, role, created_by, created_at, expires_at }) => {
        return { id, email, role, created_by, created_at, expires_at }
      },
    })
  }

  async withdraw(caller: Caller, id: string): Promise<{ id: string; deleted: true }> {
    requireNoKey(caller)
    await this.#deps.database.transaction(async (tx) => {
      const { changes } = await tx.run(sql`DELETE FROM invitations WHERE id = ${id} AND account_id = ${caller.account_id}`)
      if (changes === 0) throw notFound('invitation')
    })
    return { id, deleted: true }
  }

  /** Makes the person. Throws Fault 403, code `invitation_invalid`; 400 for a password against the rules; 409, code `email_taken`. */
  async accept({ token, password }: AcceptanceInput, from: { ip: string }): Promise<Person> {
    const { database, clock, log, audit, logins, hashes } = this.#deps
    // without an invitation, no slow hash is computed
    const { email } = await this.#find(token)
    requirePassword(password, email)
    const hash = await hashes.hash(password)
    const person = await database.transaction(async (tx) => {
      const invitation = await this.#find(token, tx)
      const { id, account_id, role } = invitation
      const login = await logins.insert(tx, { account_id, role, email: invitation.email, password: hash, at: iso(clock.now()) })
      await tx.run(sql`DELETE FROM invitations WHERE id = ${id}`)
      await audit.append(tx, {
        account_id,
        actor: login.id,
        client: null,
        address: from.ip,
        action: 'person.joined',
        target: login.id,
        identity_id: null,
        detail: { email: login.email, role, invitation: id },
      })
      return login
    })
    log.info({ account_id: person.account_id, person: person.id, address: from.ip }, 'invitation accepted')
    return toPerson(person)
  }

  /** Deletes those that have expired. */
  async sweep(): Promise<void> {
    const { database, clock } = this.#deps
    await database.transaction((tx) => tx.run(sql`DELETE FROM invitations WHERE expires_at <= ${iso(clock.now())}`))
  }

  async #find(token: string, reader: Database | Transaction = this.#deps.database): Promise<InvitationRow> {
    const { clock, accounts } = this.#deps
    const row = await reader.get<InvitationRow>(sql`SELECT * FROM invitations WHERE hash = ${keyHash(token)}`)
    if (!row || Date.parse(row.expires_at) <= clock.now() || !accounts.exists(row.account_id)) throw invalidInvitation()
    return row
  }
}

/** Deletes the invitations of an address, in any case of its letters, and those that have expired by `now` (ISO 8601). An account has at most 100. */
async function dropEarlier(tx: Transaction, accountId: string, email: string, now: string): Promise<void> {
  const rows = await tx.all<InvitationRow>(sql`SELECT * FROM invitations WHERE account_id = ${accountId}`)
  for (const { id, email: invited, expires_at } of rows) {
    if (folded(invited) !== folded(email) && expires_at > now) continue
    await tx.run(sql`DELETE FROM invitations WHERE id = ${id}`)
  }
}

async function requireRoom(tx: Transaction, accountId: string): Promise<void> {
  const row = await tx.get<{ n: number }>(
    sql`SELECT (SELECT count(*) FROM logins WHERE account_id = ${accountId}) + (SELECT count(*) FROM invitations WHERE account_id = ${accountId}) AS n`,
  )
  if (row!.n < maxPeople) return
  throw conflict(`An account has at most ${maxPeople} people and invitations. Remove some first.`, { code: 'too_many_people' })
}

function invalidInvitation(): Fault {
  return new Fault(
    'forbidden',
    'This invitation is no longer valid: it was accepted, withdrawn or replaced, or is older than three days. An owner of the account can invite you again.',
    { code: 'invitation_invalid', param: 'token' },
  )
}
