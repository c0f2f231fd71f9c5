import type { Basis } from '../basis.ts'
import type { Plan } from '../accounts/plan.ts'
import { iso } from '../core/clock.ts'
import { page } from '../store/page.ts'
import { notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import { type Page, type Paging, picked } from '../core/shapes.ts'
import { type Cascade, endSome, window } from '../identities/cascade.ts'
import type { Identities } from '../identities/identities.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import { type NewTotpEntry, totpCreated, totpDeleted, TotpEntry } from './model.ts'
import type { Secrets, TotpRow } from './secrets.ts'
import { readSetup } from './setup.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'cursors'> {
  identities: Identities
  cascade: Cascade
  secrets: Secrets
  plan: Plan
}

/** The one-time passwords of every identity; their secrets are encrypted. */
export class Entries {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
    // a few secrets are erased with the identity, and the rest soon after
    deps.identities.onRemove(async (tx, identityId) => void (await this.#eraseSome(tx, identityId)))
    deps.cascade.add((tx, identityId) => this.#eraseSome(tx, identityId))
    deps.plan.counts('totp_entries', (accountId) => sql`SELECT count(*) AS n FROM totp_entries WHERE account_id = ${accountId}`)
  }

  async create(caller: Caller, identityId: string, input: NewTotpEntry): Promise<TotpEntry> {
    const { database, events, clock, identities, secrets, plan } = this.#deps
    const { secret, ...setup } = readSetup(input)
    const entry = { id: newId('totp'), identity_id: identityId, ...setup, created_at: iso(clock.now()) }
    return database.transaction(async (tx) => {
      const { account_id } = await identities.row(caller, identityId, tx)
      await plan.require(tx, account_id, 'totp_entries')
      const slot = await secrets.save(tx, entry, secret)
      await tx.run(
        sql`INSERT INTO totp_entries (id, account_id, identity_id, service_name, account_name, algorithm, digits, period, secret_slot, created_at)
          VALUES (${entry.id}, ${account_id}, ${identityId}, ${entry.service_name}, ${entry.account_name}, ${entry.algorithm},
          ${entry.digits}, ${entry.period}, ${slot}, ${entry.created_at})`,
      )
      await events.append(tx, totpCreated, { account_id, identity_id: identityId, data: entry })
      return entry
    })
  }

  async list(caller: Caller, identityId: string, paging: Paging): Promise<Page<TotpEntry>> {
    const { database, cursors, identities } = this.#deps
    await identities.row(caller, identityId)
    return page<TotpRow, TotpEntry>(database, cursors, paging, {
      name: `totp ${identityId}`,
      from: sql`totp_entries`,
      account: caller.account_id,
      where: sql`identity_id = ${identityId}`,
      present: (row) => picked(TotpEntry, row),
    })
  }

  async get(caller: Caller, identityId: string, id: string): Promise<TotpEntry> {
    return picked(TotpEntry, await this.row(caller, identityId, id))
  }

  /** The row of an entry the caller may see; throws Fault not_found. */
  async row(caller: Caller, identityId: string, id: string, reader: Reader = this.#deps.database): Promise<TotpRow> {
    await this.#deps.identities.row(caller, identityId, reader)
    const row = await reader.get<TotpRow>(sql`SELECT * FROM totp_entries WHERE id = ${id} AND identity_id = ${identityId}`)
    if (!row) throw notFound('one-time password')
    return row
  }

  async remove(caller: Caller, identityId: string, id: string): Promise<{ id: string; deleted: true }> {
    const { database, events } = this.#deps
    await database.transaction(async (tx) => {
      const row = await this.row(caller, identityId, id, tx)
      await this.#erase(tx, row)
      await events.append(tx, totpDeleted, { account_id: row.account_id, identity_id: identityId, data: picked(TotpEntry, row) })
    })
    return { id, deleted: true }
  }

  async #eraseSome(tx: Transaction, identityId: string): Promise<number | undefined> {
    const rows = await tx.all<Pick<TotpRow, 'seq' | 'secret_slot'>>(
      sql`SELECT seq, secret_slot FROM totp_entries WHERE identity_id = ${identityId} ORDER BY seq LIMIT ${window}`,
    )
    return endSome(rows, async (row) => {
      await this.#erase(tx, row)
      return 1
    })
  }

  async #erase(tx: Transaction, row: Pick<TotpRow, 'seq' | 'secret_slot'>): Promise<void> {
    await this.#deps.secrets.erase(tx, row)
    await tx.run(sql`DELETE FROM totp_entries WHERE seq = ${row.seq}`)
  }
}
