import type { Plan } from '../accounts/plan.ts'
import type { EventLog } from '../events/log.ts'
import type { Trash } from '../ops/retention/trash.ts'
import { join, raw, sql, type Sql, type Transaction } from '../store/database.ts'
import { bytesOf, releaseStorage } from './media-quota.ts'
import { type SmsRow, storedColumns } from './rows.ts'

interface Deps {
  events: EventLog
  plan: Plan
  trash: Trash
}

const columns: Sql = join(storedColumns.map((name) => raw(name)))

/** The most messages of a deleted identity removed in one transaction. */
const batchSize = 16

/** Deleted text messages: invisible to all other queries, and complete until they are purged. */
export class SmsTrash {
  readonly kind = 'sms'
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
    deps.trash.add(this)
  }

  async put(tx: Transaction, row: SmsRow): Promise<void> {
    const { id, account_id, identity_id } = row
    const { events, trash } = this.#deps
    await this.#move(tx, id)
    await events.hide(tx, id)
    await trash.put(tx, { id, kind: this.kind, account_id, identity_id, octets: await bytesOf(tx, row) })
  }

  find(tx: Transaction, identityId: string, id: string): Promise<SmsRow | undefined> {
    return tx.get<SmsRow>(sql`SELECT * FROM sms_trash WHERE id = ${id} AND identity_id = ${identityId}`)
  }

  async restore(tx: Transaction, id: string): Promise<void> {
    const { events, trash } = this.#deps
    await tx.run(sql`INSERT INTO sms (${columns}) SELECT ${columns} FROM sms_trash WHERE id = ${id}`)
    await tx.run(sql`DELETE FROM sms_trash WHERE id = ${id}`)
    await trash.take(tx, id)
    await events.reveal(tx, id)
  }

  async purge(tx: Transaction, id: string): Promise<void> {
    const { events, plan } = this.#deps
    const row = await tx.get<SmsRow>(sql`DELETE FROM sms_trash WHERE id = ${id} RETURNING *`)
    if (!row) return
    const octets = await bytesOf(tx, row)
    await tx.run(sql`DELETE FROM blobs WHERE id IN (SELECT blob_id FROM sms_media WHERE sms_id = ${id} AND blob_id IS NOT NULL)`)
    await tx.run(sql`DELETE FROM sms_media WHERE sms_id = ${id}`)
    await releaseStorage(tx, plan, row, octets)
    await events.redact(tx, id)
  }

  async clear(tx: Transaction, identityId: string): Promise<boolean> {
    const living = await tx.all<{ id: string }>(
      sql`SELECT id FROM sms WHERE identity_id = ${identityId} ORDER BY seq LIMIT ${batchSize}`,
    )
    for (const { id } of living) await this.#move(tx, id)
    const thrown = await tx.all<{ id: string }>(
      sql`SELECT id FROM sms_trash WHERE identity_id = ${identityId} ORDER BY seq LIMIT ${batchSize}`,
    )
    for (const { id } of thrown) await this.purge(tx, id)
    return thrown.length > 0
  }

  async #move(tx: Transaction, id: string): Promise<void> {
    const now = this.#deps.trash.now()
    await tx.run(sql`INSERT INTO sms_trash (${columns}, deleted_at) SELECT ${columns}, ${now} FROM sms WHERE id = ${id}`)
    await tx.run(sql`DELETE FROM sms WHERE id = ${id}`)
  }
}
