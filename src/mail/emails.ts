import type { Plan } from '../account/plan.ts'
import type { Cursors } from '../core/cursor.ts'
import { invalid, notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { EventLog } from '../events/log.ts'
import type { Identities } from '../identities/identities.ts'
import { readBlob } from '../store/blobs.ts'
import { join, sql } from '../store/database.ts'
import type { Database, Reader, Sql } from '../store/database.ts'
import { page } from '../store/page.ts'
import { deliveriesOf, deliveriesWithHistory } from './deliveries.ts'
import { emailRow, rowColumns, selectWithBody, whole, withBodies } from './email-rows.ts'
import type { StoredEmail, WithBody } from './email-rows.ts'
import type { Dispatcher } from './mailroom.ts'
import type { Email, EmailChange, EmailRow } from './model.ts'
import type { EmailFilter } from './queries.ts'
import { takeFromThread } from './threads.ts'
import { withTrace } from './trace.ts'

/** A list that takes longer is given up, in milliseconds. */
const longestList = 5000

type Parts = { database: Database; events: EventLog; cursors: Cursors; identities: Identities; plan: Plan; hostname: string }

/** The e-mails of the living identities, for callers. */
export class Emails {
  readonly #database: Database
  readonly #events: EventLog
  readonly #cursors: Cursors
  readonly #identities: Identities
  readonly #plan: Plan
  readonly #hostname: string
  #dispatcher: Dispatcher | undefined

  constructor(parts: Parts) {
    this.#database = parts.database
    this.#events = parts.events
    this.#cursors = parts.cursors
    this.#identities = parts.identities
    this.#plan = parts.plan
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
    return page<StoredEmail, EmailRow>(isQuick(filter) ? this.#database : this.#patient, this.#cursors, filter, {
      name: `emails ${identityId} ${JSON.stringify(named)}`,
      select: sql`SELECT ${rowColumns} FROM emails`,
      where: sql`identity_id = ${identityId} AND ${conditions(filter)}`,
      order: 'seq',
      present: emailRow,
    })
  }

  /** A filter that reads row after row of a large mailbox runs beside the event loop. */
  get #patient(): Pick<Reader, 'all'> {
    return { all: (query) => this.#database.slow(query, longestList) }
  }

  async get(caller: Caller, identityId: string, id: string): Promise<Email> {
    await this.#identities.row(caller, identityId)
    const row = await this.#withBody(identityId, id)
    const deliveries = row.direction === 'outbound' ? await deliveriesWithHistory(this.#database, id) : []
    return { ...whole(row), deliveries }
  }

  /** The messages of one thread, oldest first, whole; the thread was checked before. */
  async ofThread(threadId: string): Promise<Email[]> {
    const rows = await this.#database.all<WithBody>(
      withBodies(sql`thread_id = ${threadId} AND duplicate_of IS NULL ORDER BY seq LIMIT 1000`),
    )
    return this.#whole(rows)
  }

  /** All of one identity's messages in the order they came, for the timeline. */
  async chronological(identityId: string, after: number, limit: number, offset = 0): Promise<{ seq: number; email: Email }[]> {
    const rows = await this.#database.all<WithBody>(
      withBodies(sql`identity_id = ${identityId} AND seq > ${after} AND duplicate_of IS NULL AND spam = 0
        ORDER BY seq LIMIT ${limit} OFFSET ${offset}`),
    )
    const emails = await this.#whole(rows)
    return rows.map((row, index) => ({ seq: row.seq, email: emails[index]! }))
  }

  /** Where they stand in time, as far as `chronological` shows them. */
  heads(identityId: string, after: number, limit: number): Promise<{ seq: number; created_at: string }[]> {
    return this.#database.all(
      sql`SELECT seq, created_at FROM emails WHERE identity_id = ${identityId} AND seq > ${after} AND duplicate_of IS NULL AND spam = 0
        ORDER BY seq LIMIT ${limit}`,
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
      if (change.send_at !== undefined) await this.#dispatcher?.reschedule(tx, row, change.send_at)
      await tx.run(sql`UPDATE emails SET read = ${after}, labels = ${JSON.stringify(labels)} WHERE id = ${id}`)
      if (after !== row.read && row.duplicate_of === null) {
        await tx.run(sql`UPDATE threads SET unread_count = unread_count + ${after === 1 ? -1 : 1} WHERE id = ${row.thread_id}`)
      }
    })
    return this.get(caller, identityId, id)
  }

  /** The message goes whole: its row, its octets (when no other copy needs them), and what the log tells of it. */
  async remove(caller: Caller, identityId: string, id: string): Promise<{ id: string; deleted: true }> {
    return this.#database.transaction(async (tx) => {
      const { account_id } = await this.#identities.row(caller, identityId, tx)
      const row = await find(tx, identityId, id)
      if (row.direction === 'outbound') await this.#dispatcher?.withdraw(tx, id)
      await tx.run(sql`DELETE FROM emails WHERE id = ${id}`)
      await tx.run(sql`DELETE FROM emails_search WHERE rowid = ${row.seq}`)
      await tx.run(sql`DELETE FROM email_recipients WHERE email_id = ${id}`)
      await tx.run(sql`UPDATE identities SET stored_bytes = max(0, stored_bytes - ${row.size}) WHERE id = ${identityId}`)
      await this.#plan.add(tx, account_id, 'storage_bytes', -row.size)
      if (row.duplicate_of === null) await takeFromThread(tx, row.thread_id, row.read === 0)
      await this.#events.redact(tx, id)
      // the copies of one message share its octets
      const shared = await tx.get(sql`SELECT 1 FROM emails WHERE raw_id = ${row.raw_id} LIMIT 1`)
      if (!shared) await tx.run(sql`DELETE FROM blobs WHERE id IN (${row.raw_id}, ${row.body_id})`)
      return { id, deleted: true }
    })
  }

  /** The octets as they came, our trace header before them (RFC 5321 4.4) and without forged fields that bear our name. */
  async raw(caller: Caller, identityId: string, id: string): Promise<Buffer> {
    await this.#identities.row(caller, identityId)
    const row = await find(this.#database, identityId, id)
    return withTrace(await this.octets(row.raw_id), row.trace, this.#hostname)
  }

  /** Exactly what came, nothing before it. */
  async octets(rawId: number): Promise<Buffer> {
    const raw = await readBlob(this.#database, rawId)
    if (!raw) throw notFound('message source; retention has removed it')
    return raw
  }

  /** The row of an e-mail the caller may see. */
  async row(caller: Caller, identityId: string, id: string): Promise<StoredEmail> {
    await this.#identities.row(caller, identityId)
    return find(this.#database, identityId, id)
  }

  /** The row behind a signed URL: there while the e-mail and its identity are. */
  async signedRow(id: string): Promise<StoredEmail> {
    const row = await this.#database.get<StoredEmail>(
      sql`SELECT emails.* FROM emails JOIN identities ON identities.id = emails.identity_id WHERE emails.id = ${id} AND identities.status <> 'deleted'`,
    )
    if (!row) throw notFound('e-mail')
    return row
  }

  async #whole(rows: WithBody[]): Promise<Email[]> {
    const outbound = rows.filter(({ direction }) => direction === 'outbound').map(({ id }) => id)
    const deliveries = await deliveriesOf(this.#database, outbound)
    return rows.map((row) => ({ ...whole(row), deliveries: deliveries.get(row.id) ?? [] }))
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

/** Whether an index leads to the rows. */
function isQuick(filter: EmailFilter): boolean {
  const { from, subject, label, has_attachments, offset } = filter
  return [from, subject, label, has_attachments].every((one) => one === undefined) && offset < 1000
}

function conditions(filter: EmailFilter): Sql {
  const list = common(filter)
  if (filter.direction !== 'all') list.push(sql`direction = ${filter.direction}`)
  if (filter.thread_id !== undefined) list.push(sql`thread_id = ${filter.thread_id}`)
  if (filter.label !== undefined) {
    // a quote inside a label is escaped, so what opens one follows the bracket or a comma only
    const label = JSON.stringify(filter.label)
    list.push(sql`(instr(labels, ${`[${label}`}) = 1 OR instr(labels, ${`,${label}`}) > 0)`)
  }
  if (filter.subject !== undefined) list.push(sql`instr(lower(subject), lower(${filter.subject})) > 0`)
  if (filter.has_attachments !== undefined) list.push(sql`has_attachments = ${filter.has_attachments ? 1 : 0}`)
  if (!filter.duplicates) list.push(sql`duplicate_of IS NULL`)
  list.push(sql`spam = ${filter.spam ? 1 : 0}`)
  return join(list, ' AND ')
}

/** The conditions that lists and searches share. */
export function common(filter: {
  unread?: boolean | undefined
  from?: string | undefined
  after?: string | undefined
  before?: string | undefined
}): Sql[] {
  const list: Sql[] = []
  if (filter.unread !== undefined) list.push(filter.unread ? sql`read = 0` : sql`read = 1`)
  if (filter.from !== undefined) {
    // lowered by the same hand on both sides, for engines differ in what they lower
    list.push(sql`(instr(lower(from_address), lower(${filter.from})) > 0 OR instr(lower(from_name), lower(${filter.from})) > 0)`)
  }
  if (filter.after !== undefined) list.push(sql`received_at > ${filter.after}`)
  if (filter.before !== undefined) list.push(sql`received_at < ${filter.before}`)
  return list
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
