import type { Plan } from '../account/plan.ts'
import type { Cursors } from '../core/cursor.ts'
import { Fault, invalid, notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { Turns } from '../core/turns.ts'
import type { EventLog } from '../events/log.ts'
import type { Identities } from '../identities/identities.ts'
import type { Trash } from '../retention/trash.ts'
import { readBlob } from '../store/blobs.ts'
import { sql } from '../store/database.ts'
import type { Database, Reader } from '../store/database.ts'
import { fitting, page } from '../store/page.ts'
import { deliveriesOf, deliveriesWithHistory } from './deliveries.ts'
import { conditions, isQuick } from './conditions.ts'
import { emailRow, octetsOfWhole, rowColumns, selectWithBody, whole } from './email-rows.ts'
import type { StoredEmail, WithBody } from './email-rows.ts'
import type { Dispatcher } from './mailroom.ts'
import type { Email, EmailChange, EmailRow } from './model.ts'
import type { EmailFilter } from './queries.ts'
import { withTrace } from './trace.ts'
import { MailTrash } from './trash.ts'

/** A list that takes longer is given up, in milliseconds. */
const longestList = 5000

interface Parts {
  database: Database
  cursors: Cursors
  identities: Identities
  events: EventLog
  plan: Plan
  trash: Trash
  hostname: string
}

/** The e-mails of the living identities, for callers. */
export class Emails {
  readonly #database: Database
  readonly #cursors: Cursors
  readonly #identities: Identities
  readonly #trash: Trash
  readonly #thrown: MailTrash
  readonly #hostname: string
  #dispatcher: Dispatcher | undefined

  constructor(parts: Parts) {
    this.#database = parts.database
    this.#cursors = parts.cursors
    this.#identities = parts.identities
    this.#trash = parts.trash
    this.#thrown = new MailTrash(parts)
    this.#hostname = parts.hostname
  }

  /** Before the first call. */
  attach(dispatcher: Dispatcher): void {
    this.#dispatcher = dispatcher
  }

  async list(
    caller: Caller,
    identityId: string,
    filter: EmailFilter,
  ): Promise<{ data: EmailRow[]; has_more: boolean; next_cursor: string | null }> {
    await this.#identities.row(caller, identityId)
    const { limit: _limit, cursor: _cursor, offset: _offset, ...named } = filter
    return page<StoredEmail, EmailRow>(isQuick(filter) ? this.#database : this.#patient(caller), this.#cursors, filter, {
      name: `emails ${identityId} ${JSON.stringify(named)}`,
      select: filter.trash
        ? sql`SELECT ${rowColumns}, deleted_at FROM emails_trash AS emails`
        : sql`SELECT ${rowColumns} FROM emails`,
      where: sql`identity_id = ${identityId} AND ${conditions(filter)}`,
      order: 'seq',
      present: emailRow,
    })
  }

  /** A filter that reads row after row of a large mailbox runs beside the event loop. */
  #patient({ account_id }: Caller): Pick<Reader, 'all'> {
    return { all: (query) => this.#database.slow(query, longestList, account_id) }
  }

  async get(caller: Caller, identityId: string, id: string): Promise<Email> {
    await this.#identities.row(caller, identityId)
    const row = await this.#withBody(identityId, id)
    const deliveries = row.direction === 'outbound' ? await deliveriesWithHistory(this.#database, id) : []
    return { ...whole(row), deliveries }
  }

  /** The messages of one thread after a place, oldest first, whole, as many as one answer carries; the thread was checked before. */
  async ofThread(threadId: string, after: number, limit: number): Promise<{ emails: Email[]; next: number | null }> {
    const rest = sql`thread_id = ${threadId} AND seq > ${after} AND duplicate_of IS NULL`
    const heads = await this.#database.all<{ seq: number; octets: number }>(
      sql`SELECT seq, ${octetsOfWhole} AS octets FROM emails WHERE ${rest} ORDER BY seq LIMIT ${limit + 1}`,
    )
    const carried = fitting(
      heads.map(({ octets }) => octets),
      limit,
    )
    const last = heads[carried - 1]?.seq ?? after
    const rows = await this.#database.all<WithBody>(sql`${selectWithBody} WHERE ${rest} AND seq <= ${last} ORDER BY seq`)
    return { emails: await this.#whole(rows), next: heads.length > carried ? last : null }
  }

  /** All of one identity's messages in the order they came, for the timeline. */
  async chronological(identityId: string, after: number, limit: number, offset = 0): Promise<{ seq: number; email: Email }[]> {
    const rows = await this.#database.all<WithBody>(
      sql`${selectWithBody} WHERE identity_id = ${identityId} AND seq > ${after} AND duplicate_of IS NULL AND spam = 0
        ORDER BY seq LIMIT ${limit} OFFSET ${offset}`,
    )
    const emails = await this.#whole(rows)
    return rows.map((row, index) => ({ seq: row.seq, email: emails[index]! }))
  }

  /** Where they stand in time, as far as `chronological` shows them, and how large each is there. */
  heads(identityId: string, after: number, limit: number): Promise<{ seq: number; created_at: string; octets: number }[]> {
    return this.#database.all(
      sql`SELECT seq, created_at, ${octetsOfWhole} AS octets FROM emails WHERE identity_id = ${identityId} AND seq > ${after}
        AND duplicate_of IS NULL AND spam = 0 ORDER BY seq LIMIT ${limit}`,
    )
  }

  /** Whether the message is still there to be shown. */
  async lives(id: string): Promise<boolean> {
    return (await this.#database.get(sql`SELECT 1 FROM emails WHERE id = ${id}`)) !== undefined
  }

  async change(caller: Caller, identityId: string, id: string, change: EmailChange): Promise<Email> {
    const read = wantedRead(change)
    await this.#database.transaction(async (tx) => {
      await this.#identities.row(caller, identityId, tx)
      const row = await find(tx, identityId, id)
      const after = read === undefined ? row.read : read ? 1 : 0
      const labels = withLabels(JSON.parse(row.labels) as string[], change.labels)
      if (change.send_at !== undefined) await this.#dispatcher?.reschedule(tx, caller, row, change.send_at)
      await tx.run(sql`UPDATE emails SET read = ${after}, labels = ${JSON.stringify(labels)} WHERE id = ${id}`)
      if (after !== row.read && row.duplicate_of === null) {
        await tx.run(sql`UPDATE threads SET unread_count = unread_count + ${after === 1 ? -1 : 1} WHERE id = ${row.thread_id}`)
      }
    })
    return this.get(caller, identityId, id)
  }

  /** The message goes into the trash, or with `purge` for good, from there too: its row, its octets, and what the log tells of it. */
  async remove(caller: Caller, identityId: string, id: string, purge: boolean): Promise<{ id: string; deleted: true }> {
    return this.#database.transaction(async (tx) => {
      const { account_id } = await this.#identities.row(caller, identityId, tx)
      const row = await tx.get<StoredEmail>(sql`SELECT * FROM emails WHERE id = ${id} AND identity_id = ${identityId}`)
      if (row) {
        if (row.direction === 'outbound') await this.#dispatcher?.withdraw(tx, id)
        await this.#thrown.put(tx, row, account_id)
      } else if (!purge || !(await this.#thrown.find(tx, identityId, id))) throw notFound('e-mail')
      if (purge) await this.#trash.purge(tx, this.#thrown.kind, id)
      return { id, deleted: true }
    })
  }

  /** Out of the trash. */
  async restore(caller: Caller, identityId: string, id: string): Promise<Email> {
    await this.#database.transaction(async (tx) => {
      const { email } = await this.#identities.row(caller, identityId, tx)
      const row = await this.#thrown.find(tx, identityId, id)
      if (!row) throw notFound('e-mail in the trash')
      await this.#thrown.restore(tx, row, email)
    })
    return this.get(caller, identityId, id)
  }

  /** The octets as they came, our trace header before them (RFC 5321 4.4) and without forged fields that bear our name. */
  async raw(caller: Caller, identityId: string, id: string): Promise<Buffer> {
    await this.#identities.row(caller, identityId)
    const row = await find(this.#database, identityId, id)
    return withTrace(await this.octets(row), row.trace, this.#hostname)
  }

  /** Exactly what came, nothing before it. Throws Fault not_found, code `raw_expired`, when it is not kept any more. */
  async octets(row: Pick<StoredEmail, 'raw_id' | 'raw_expired_at'>): Promise<Buffer> {
    requireRaw(row)
    const found = await readBlob(this.#database, row.raw_id)
    if (!found) throw rawExpired()
    return found
  }

  /** The row of an e-mail the caller may see. */
  async row(caller: Caller, identityId: string, id: string): Promise<StoredEmail> {
    await this.#identities.row(caller, identityId)
    return find(this.#database, identityId, id)
  }

  /** The row behind a signed URL: there while the e-mail and its identity are. */
  async signedRow(id: string): Promise<StoredEmail & { account_id: string }> {
    const row = await this.#database.get<StoredEmail & { account_id: string }>(
      sql`SELECT emails.*, identities.account_id FROM emails JOIN identities ON identities.id = emails.identity_id WHERE emails.id = ${id} AND identities.status <> 'deleted'`,
    )
    if (!row) throw notFound('e-mail')
    return row
  }

  async #whole(rows: WithBody[]): Promise<Email[]> {
    const outbound = rows.filter(({ direction }) => direction === 'outbound').map(({ id }) => id)
    const deliveries = await deliveriesOf(this.#database, outbound)
    const turns = new Turns()
    const emails: Email[] = []
    for (const row of rows) {
      emails.push({ ...whole(row), deliveries: deliveries.get(row.id) ?? [] })
      // bodies are unpacked, and may be long
      if (turns.due) await turns.yield()
    }
    return emails
  }

  async #withBody(identityId: string, id: string): Promise<WithBody> {
    const row = await this.#database.get<WithBody>(sql`${selectWithBody} WHERE emails.id = ${id} AND identity_id = ${identityId}`)
    if (!row) throw notFound('e-mail')
    return row
  }
}

async function find(reader: Reader, identityId: string, id: string): Promise<StoredEmail> {
  const row = await reader.get<StoredEmail>(sql`SELECT * FROM emails WHERE id = ${id} AND identity_id = ${identityId}`)
  if (!row) throw notFound('e-mail')
  return row
}

/** Throws Fault not_found, code `raw_expired`, when the octets of a message were let go of. */
export function requireRaw({ raw_expired_at }: Pick<StoredEmail, 'raw_expired_at'>): void {
  if (raw_expired_at !== null) throw rawExpired()
}

function rawExpired(): Fault {
  return new Fault('not_found', 'The octets of this message are not kept any more (retention.raw); what was read of it is.', {
    code: 'raw_expired',
  })
}

function wantedRead(change: EmailChange): boolean | undefined {
  if (change.read !== undefined && change.unread !== undefined && change.read === change.unread) {
    throw invalid('unread', 'read and unread contradict each other; give one of them.')
  }
  return change.read ?? (change.unread === undefined ? undefined : !change.unread)
}

function withLabels(labels: string[], change: EmailChange['labels']): string[] {
  if (!change) return labels
  const kept = new Set([...labels, ...change.add])
  for (const label of change.remove) kept.delete(label)
  if (kept.size > 100) throw invalid('labels', 'An e-mail can bear at most 100 labels.')
  return [...kept]
}
