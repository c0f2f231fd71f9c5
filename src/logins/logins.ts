import type { Plan } from '../accounts/plan.ts'
import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { conflict, invalid } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page, Paging } from '../core/shapes.ts'
import type { EventType } from '../events/model.ts'
import { type Cascade, endSome, window } from '../identities/cascade.ts'
import type { Identities } from '../identities/identities.ts'
import type { Holds } from '../policy/holds.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import { page } from '../store/page.ts'
import {
  type Login,
  type LoginChange,
  loginCreated,
  loginDeleted,
  type LoginNoted,
  type LoginSecrets,
  loginUpdated,
  type NewLogin,
} from './model.ts'
import { columns, hostOf, type LoginRow, noted, rowOf } from './row.ts'
import type { Secrets } from './secrets.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'cursors'> {
  identities: Identities
  cascade: Cascade
  plan: Plan
  holds: Holds
  secrets: Secrets
}

/** Logins of one identity. */
const maxLogins = 1000

/** A login with all that is sealed of it. */
interface Whole extends LoginSecrets, Pick<Login, 'label' | 'url' | 'username' | 'totp_id'> {}

/** The logins that identities have elsewhere; what is secret of them is sealed, and only a reveal reads it. */
export class Logins {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
    // a few are erased with the identity, and the rest soon after
    deps.identities.onRemove(async (tx, identityId) => void (await this.#eraseSome(tx, identityId)))
    deps.cascade.add((tx, identityId) => this.#eraseSome(tx, identityId))
  }

  async create(caller: Caller, identityId: string, input: NewLogin): Promise<Login> {
    const { database, clock, identities, secrets, plan } = this.#deps
    const whole = changed({ ...none, label: input.label }, input)
    const { label, url, username, totp_id } = whole
    return database.transaction(async (tx) => {
      const { account_id } = await identities.row(caller, identityId, tx)
      await this.#requireRoom(tx, identityId)
      await requireTotp(tx, identityId, totp_id)
      const name = await secrets.save(tx, identityId, username)
      const sealed = await secrets.save(tx, identityId, secretsOf(whole))
      const octets = octetsOf(whole, name, sealed)
      await plan.require(tx, account_id, 'storage_bytes', octets)
      await plan.add(tx, account_id, 'storage_bytes', octets)
      const [id, now] = [newId('login'), iso(clock.now())]
      const { has_password, has_api_key, has_notes } = flagsOf(whole)
      const row = await tx.get<LoginRow>(
        sql`INSERT INTO stored_logins (id, account_id, identity_id, label, url, place, username_slot, secrets_slot, has_password, has_api_key,
          has_notes, totp_id, octets, created_at, updated_at) VALUES (${id}, ${account_id}, ${identityId}, ${label}, ${url},
          ${hostOf(url) ?? id}, ${name.slot}, ${sealed.slot}, ${has_password}, ${has_api_key}, ${has_notes}, ${totp_id}, ${octets},
          ${now}, ${now}) RETURNING *`,
      )
      return { ...(await this.#emit(tx, loginCreated, row!)), username }
    })
  }

  async list(caller: Caller, identityId: string, paging: Paging): Promise<Page<Login>> {
    const { database, cursors, identities, secrets } = this.#deps
    await identities.row(caller, identityId)
    const name = sql`(SELECT secret FROM login_secrets WHERE slot = username_slot) AS sealed_name`
    return page<LoginRow & { sealed_name: Uint8Array }, Login>(database, cursors, paging, {
      name: `logins ${identityId}`,
      columns: sql`${columns}, ${name}`,
      from: sql`stored_logins`,
      account: caller.account_id,
      where: sql`identity_id = ${identityId}`,
      octets: sql`octets`,
      present: ({ sealed_name, ...row }) => ({
        ...noted(row),
        username: secrets.open(sealed_name, identityId, row.username_slot) as string | null,
      }),
    })
  }

  async get(caller: Caller, id: string): Promise<Login> {
    // the row and its slot are of the same moment
    return this.#deps.database.transaction(async (tx) => {
      const row = await rowOf(tx, this.#deps.clock, caller, id)
      return { ...noted(row), username: await this.#username(tx, row) }
    })
  }

  change(caller: Caller, id: string, input: LoginChange): Promise<Login> {
    const { database, clock, plan, secrets } = this.#deps
    return database.transaction(async (tx) => {
      const before = await rowOf(tx, this.#deps.clock, caller, id)
      const { identity_id, account_id } = before
      const whole = changed(await this.#whole(tx, before), input)
      if (input.totp_id !== undefined) await requireTotp(tx, identity_id, whole.totp_id)
      await secrets.erase(tx, before.username_slot)
      await secrets.erase(tx, before.secrets_slot)
      const name = await secrets.save(tx, identity_id, whole.username)
      const sealed = await secrets.save(tx, identity_id, secretsOf(whole))
      const octets = octetsOf(whole, name, sealed)
      if (octets > before.octets) await plan.require(tx, account_id, 'storage_bytes', octets - before.octets)
      await plan.add(tx, account_id, 'storage_bytes', octets - before.octets)
      const { label, url, totp_id } = whole
      const { has_password, has_api_key, has_notes } = flagsOf(whole)
      await tx.run(
        sql`UPDATE stored_logins SET label = ${label}, url = ${url}, place = ${placeOf(caller, before, url)}, username_slot = ${name.slot},
          secrets_slot = ${sealed.slot}, has_password = ${has_password}, has_api_key = ${has_api_key}, has_notes = ${has_notes},
          totp_id = ${totp_id}, octets = ${octets}, updated_at = ${iso(clock.now())} WHERE id = ${id}`,
      )
      return { ...(await this.#emit(tx, loginUpdated, await rowOf(tx, this.#deps.clock, caller, id))), username: whole.username }
    })
  }

  remove(caller: Caller, id: string): Promise<{ id: string; deleted: true; identity_id: string }> {
    return this.#deps.database.transaction(async (tx) => {
      const row = await rowOf(tx, this.#deps.clock, caller, id)
      await this.#erase(tx, row)
      await this.#emit(tx, loginDeleted, row)
      // the identity is for the audit log
      return { id, deleted: true, identity_id: row.identity_id }
    })
  }

  async #requireRoom(tx: Transaction, identityId: string): Promise<void> {
    const full = await tx.get(sql`SELECT 1 FROM stored_logins WHERE identity_id = ${identityId} LIMIT 1 OFFSET ${maxLogins - 1}`)
    if (full) throw conflict(`An identity has at most ${maxLogins} logins. Delete some first.`, { code: 'too_many_logins' })
  }

  async #username(reader: Reader, { identity_id, username_slot }: LoginRow): Promise<string | null> {
    return (await this.#deps.secrets.read(reader, identity_id, username_slot)) as string | null
  }

  async #whole(tx: Transaction, row: LoginRow): Promise<Whole> {
    const { label, url, totp_id, identity_id, secrets_slot } = row
    const sealed = (await this.#deps.secrets.read(tx, identity_id, secrets_slot)) as LoginSecrets
    return { label, url, totp_id, username: await this.#username(tx, row), ...sealed }
  }

  async #eraseSome(tx: Transaction, identityId: string): Promise<number | undefined> {
    const rows = await tx.all<LoginRow>(
      sql`SELECT * FROM stored_logins WHERE identity_id = ${identityId} ORDER BY seq LIMIT ${window}`,
    )
    return endSome(rows, async (row) => {
      await this.#erase(tx, row)
      return 1
    })
  }

  async #erase(tx: Transaction, { seq, id, account_id, username_slot, secrets_slot, octets }: LoginRow): Promise<void> {
    const { holds, plan, secrets } = this.#deps
    await holds.withdraw(tx, id)
    await holds.erase(tx, id)
    await secrets.erase(tx, username_slot)
    await secrets.erase(tx, secrets_slot)
    await plan.add(tx, account_id, 'storage_bytes', -octets)
    await tx.run(sql`DELETE FROM stored_logins WHERE seq = ${seq}`)
  }

  async #emit(tx: Transaction, type: EventType<LoginNoted>, row: LoginRow): Promise<LoginNoted> {
    const { account_id, identity_id } = row
    const data = noted(row)
    await this.#deps.events.append(tx, type, { account_id, identity_id, data })
    return data
  }
}

const none = { url: null, username: null, password: null, api_key: null, notes: null, totp_id: null }

function changed(before: Whole, input: LoginChange): Whole {
  const given = Object.entries(input).filter(([, value]) => value !== undefined)
  return { ...before, ...(Object.fromEntries(given) as Partial<Whole>) }
}

function secretsOf({ password, api_key, notes }: Whole): LoginSecrets {
  return { password, api_key, notes }
}

function flagsOf({ password, api_key, notes }: Whole): Pick<LoginRow, 'has_password' | 'has_api_key' | 'has_notes'> {
  return { has_password: Number(password !== null), has_api_key: Number(api_key !== null), has_notes: Number(notes !== null) }
}

function octetsOf({ label, url }: Whole, ...slots: { octets: number }[]): number {
  return slots.reduce((sum, { octets }) => sum + octets, Buffer.byteLength(`${label}${url ?? ''}`))
}

/** The place of a login with another URL: a key that names a host which a person has approved for others does not get the secrets by that. */
function placeOf({ key_id }: Caller, { id, url, place }: LoginRow, to: string | null): string {
  const host = hostOf(to)
  if (host === hostOf(url)) return place
  return key_id === null ? (host ?? id) : id
}

async function requireTotp(reader: Reader, identityId: string, totpId: string | null): Promise<void> {
  if (totpId === null) return
  const found = await reader.get(sql`SELECT 1 FROM totp_entries WHERE id = ${totpId} AND identity_id = ${identityId}`)
  if (!found) throw invalid('totp_id', 'totp_id must be a one-time password of the same identity.', 'invalid_value')
}
