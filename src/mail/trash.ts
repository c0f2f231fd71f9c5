import type { Plan } from '../accounts/plan.ts'
import { sweep } from '../core/cron.ts'
import type { EventLog } from '../events/log.ts'
import type { Trash } from '../ops/retention/trash.ts'
import type { RawMessages } from '../objects/raw-messages.ts'
import { type Database, join, raw, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import { insertSearchable } from './email-store.ts'
import { deleteWords, hasNoWords } from './search/full-text.ts'
import { deliveriesOf, overallStatus } from './deliveries.ts'
import { bodyColumns, storedColumns, type StoredEmail, storedLists, type StoredEmailWithBody } from './email-rows.ts'
import type { Email } from './model.ts'
import { othersAmong, restoreToThread, removeFromThread } from './threads.ts'

interface Deps {
  events: EventLog
  plan: Plan
  trash: Trash
  raw: RawMessages
}

const columns: Sql = join(storedColumns.map((name) => raw(name)))

/** Messages of a deleted identity that are purged in one transaction. */
const batchSize = 16

/** The trash for e-mails: deleted messages, in a table of their own, complete and with their search entries until they are purged. */
export class MailTrash {
  readonly kind = 'email'
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
    deps.trash.add(this)
  }

  /** Moves a message to the trash: out of lists, search, threads and events. */
  async put(tx: Transaction, row: StoredEmail, accountId: string): Promise<void> {
    const { events, trash } = this.#deps
    await this.#move(tx, row.id)
    if (row.duplicate_of === null) await removeFromThread(tx, row.thread_id, row.read === 0)
    await events.hide(tx, row.id)
    const { id, identity_id } = row
    await trash.put(tx, { id, kind: this.kind, account_id: accountId, identity_id, octets: storedBytesOf(row) })
  }

  /** The row of a message in the trash of this identity. */
  find(tx: Transaction, identityId: string, id: string): Promise<StoredEmail | undefined> {
    return tx.get<StoredEmail>(sql`SELECT * FROM emails_trash WHERE id = ${id} AND identity_id = ${identityId}`)
  }

  /** The row of a message without a search entry, which older versions deleted when they moved it to the trash. */
  findUnindexed(reader: Reader, identityId: string, id: string): Promise<StoredEmailWithBody | undefined> {
    return reader.get<StoredEmailWithBody>(
      sql`SELECT emails_trash.*, ${bodyColumns} FROM emails_trash LEFT JOIN blobs ON blobs.id = emails_trash.body_id
        WHERE emails_trash.id = ${id} AND identity_id = ${identityId} AND duplicate_of IS NULL
        AND ${hasNoWords}`,
    )
  }

  /**
   * Restores a message as it was. One that had not been sent was withdrawn, and is not sent. `unindexed` is the whole message
   * if it has no search entry.
   */
  async restore(tx: Transaction, row: StoredEmail, own: string, unindexed?: Email): Promise<void> {
    const { id, direction } = row
    const { events, trash } = this.#deps
    await tx.run(sql`INSERT INTO emails (${columns}) SELECT ${columns} FROM emails_trash WHERE id = ${id}`)
    await tx.run(sql`DELETE FROM emails_trash WHERE id = ${id}`)
    await trash.take(tx, id)
    await events.reveal(tx, id)
    if (direction === 'outbound') await this.#updateStatus(tx, id)
    if (row.duplicate_of !== null) return
    if (unindexed) await insertSearchable(tx, row.seq, unindexed, unindexed)
    const { to, cc } = (await storedLists(tx, row)).recipients
    const addresses = [...(direction === 'inbound' ? [row.from_address] : []), ...[...to, ...cc].map(({ address }) => address)]
    await restoreToThread(tx, row.thread_id, {
      identity_id: row.identity_id,
      subject: row.subject,
      others: othersAmong(addresses, own, direction === 'inbound' ? row.to_text : row.from_address),
      own,
      unread: row.read === 0,
    })
  }

  async purge(tx: Transaction, id: string): Promise<void> {
    const { events, plan } = this.#deps
    const row = await tx.get<StoredEmail>(sql`DELETE FROM emails_trash WHERE id = ${id} RETURNING *`)
    if (!row) return
    await tx.run(sql`DELETE FROM email_recipients WHERE email_id = ${id}`)
    await deleteWords(tx, row.seq)
    await releaseStorage(tx, plan, row.identity_id, storedBytesOf(row))
    await events.redact(tx, id)
    // the copies of one message share its raw content
    const shared = await tx.get(
      sql`SELECT 1 FROM emails WHERE raw_id = ${row.raw_id} UNION ALL SELECT 1 FROM emails_trash WHERE raw_id = ${row.raw_id} LIMIT 1`,
    )
    if (shared) return
    await this.#deps.raw.delete(tx, row.raw_id)
    await tx.run(sql`DELETE FROM blobs WHERE id = ${row.body_id}`)
  }

  async clear(tx: Transaction, identityId: string): Promise<boolean> {
    const messages = await tx.all<{ id: string }>(
      sql`SELECT id FROM emails WHERE identity_id = ${identityId} ORDER BY seq LIMIT ${batchSize}`,
    )
    for (const { id } of messages) await this.#move(tx, id)
    const trashed = await tx.all<{ id: string }>(
      sql`SELECT id FROM emails_trash WHERE identity_id = ${identityId} ORDER BY seq LIMIT ${batchSize}`,
    )
    for (const { id } of trashed) await this.purge(tx, id)
    if (trashed.length > 0) return true
    const { changes } = await tx.run(
      sql`DELETE FROM threads WHERE seq IN (SELECT seq FROM threads WHERE identity_id = ${identityId} LIMIT ${10 * batchSize})`,
    )
    return changes > 0
  }

  async #move(tx: Transaction, id: string): Promise<void> {
    const { trash } = this.#deps
    await tx.run(
      sql`INSERT INTO emails_trash (${columns}, deleted_at) SELECT ${columns}, ${trash.now()} FROM emails WHERE id = ${id}`,
    )
    await tx.run(sql`DELETE FROM emails WHERE id = ${id}`)
  }

  /** Updates the status by the current state of the deliveries. */
  async #updateStatus(tx: Transaction, id: string): Promise<void> {
    const deliveries = (await deliveriesOf(tx, [id])).get(id) ?? []
    if (deliveries.length === 0) return
    await tx.run(sql`UPDATE emails SET status = ${overallStatus(deliveries.map(({ status }) => status))} WHERE id = ${id}`)
  }
}

/** Bytes that a message counts: its size while the raw message is stored, and the additional bytes of an import. */
function storedBytesOf({
  size,
  raw_expired_at,
  extra_octets,
}: Pick<StoredEmail, 'size' | 'raw_expired_at' | 'extra_octets'>): number {
  return extra_octets + (raw_expired_at === null ? size : 0)
}

/** Releases storage of an identity and its account. The storage of a deleted identity was released when it was deleted. */
export async function releaseStorage(tx: Transaction, plan: Plan, identityId: string, bytes: number): Promise<void> {
  const owner = await tx.get<{ account_id: string }>(
    sql`UPDATE identities SET stored_bytes = CASE WHEN stored_bytes > ${bytes} THEN stored_bytes - ${bytes} ELSE 0 END
      WHERE id = ${identityId} AND status <> 'deleted' RETURNING account_id`,
  )
  if (owner && bytes > 0) await plan.add(tx, owner.account_id, 'storage_bytes', -bytes)
}

interface RawDeps extends Pick<Deps, 'plan' | 'trash' | 'raw'> {
  database: Database
}

/** The maximum number of raw messages and their bytes in one transaction, so that it does not block the event loop. */
const rawBatch = { messages: 8, bytes: 4 * 1024 * 1024 }

/**
 * Deletes the raw messages received before a time (ISO 8601), except those waiting to be sent. Their retention may be shorter than that of their
 * parsed content.
 */
export async function sweepRawMail(deps: RawDeps, before: string, signal?: AbortSignal): Promise<void> {
  await sweep(() => deps.database.transaction((tx) => deleteSomeRaw(tx, deps, before)), signal)
}

async function deleteSomeRaw(tx: Transaction, deps: RawDeps, before: string): Promise<boolean> {
  const rows = await tx.all<{ raw_id: number; size: number }>(
    sql`SELECT raw_id, size FROM emails WHERE raw_expired_at IS NULL AND received_at < ${before}
      AND status NOT IN ('held', 'scheduled', 'queued', 'sending', 'deferred') ORDER BY received_at LIMIT ${rawBatch.messages}`,
  )
  let bytes = 0
  for (const { raw_id, size } of rows) {
    if (bytes > 0 && bytes + size > rawBatch.bytes) return true
    await deleteRaw(tx, deps, raw_id)
    bytes += size
  }
  return rows.length > 0
}

/** Deletes the raw message for all copies, which share it. */
async function deleteRaw(tx: Transaction, { trash, plan, raw: messages }: RawDeps, rawId: number): Promise<void> {
  const now = trash.now()
  const kept = await tx.all<{ identity_id: string; size: number }>(
    sql`UPDATE emails SET raw_expired_at = ${now} WHERE raw_id = ${rawId} AND raw_expired_at IS NULL RETURNING identity_id, size`,
  )
  const trashed = await tx.all<{ id: string; identity_id: string; size: number; extra_octets: number }>(
    sql`UPDATE emails_trash SET raw_expired_at = ${now} WHERE raw_id = ${rawId} AND raw_expired_at IS NULL RETURNING id, identity_id, size, extra_octets`,
  )
  for (const { identity_id, size } of [...kept, ...trashed]) await releaseStorage(tx, plan, identity_id, size)
  for (const { id, extra_octets } of trashed) await trash.resize(tx, id, extra_octets)
  await messages.empty(tx, rawId)
}
