import type { Basis } from '../basis.ts'
import type { Plan } from '../accounts/plan.ts'
import { fittingRows, page, rowsAt } from '../store/page.ts'
import { Fault, invalid, notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page } from '../core/shapes.ts'
import { largeWork } from '../core/work/long-work.ts'
import { release } from '../core/memory.ts'
import { Turns } from '../core/work/paced-work.ts'
import type { Identities } from '../identities/identities.ts'
import { isLiving } from '../identities/row.ts'
import { iso } from '../core/clock.ts'
import type { Trash } from '../ops/retention/trash.ts'
import type { RawMessages } from '../objects/raw-messages.ts'
import { join, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import { readRows } from '../store/rows.ts'
import { deliveriesOf, deliveriesWithHistory } from './deliveries.ts'
import { type EmailFilter, selection } from './queries.ts'
import {
  bodiedEmailSize,
  columnsWithBody,
  emailWithoutBodies,
  emailRow,
  listedEmailSize,
  rowColumns,
  selectWithBody,
  type StoredEmail,
  type StoredEmailWithBody,
  storedLists,
  wholeEmail,
  wholeEmailSize,
  withBody,
} from './email-rows.ts'
import type { Dispatcher } from './types.ts'
import type { Attachment, Email, EmailChange, EmailRow } from './model.ts'
import { messageMemory, WorkLimiter } from '../net/work-limiter.ts'
import { withTrace } from '../smtp/trace.ts'
import { MailTrash } from './trash.ts'

/** A page of so many rows is read in one statement: only an address makes a row longer than some kilobytes, and none is longer than 64 KiB. */
const fewRows = 20

/** The timeline leaves out spam and duplicates. */
const inTimeline = sql`duplicate_of IS NULL AND spam = 0`

/** Position and size of a message in the timeline. */
interface TimelineEntry {
  seq: number
  created_at: string
  octets: number
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'cursors' | 'events'> {
  identities: Identities
  plan: Plan
  trash: Trash
  raw: RawMessages
  hostname: string
}

/** Raw messages that are read for answers, until these count as unread. */
const sourceLimits = messageMemory('Too many large messages are being read at once. Retry when other requests have finished.')

/** The e-mails of identities that are not deleted, for API callers. */
export class Emails {
  readonly #deps: Deps
  readonly #mailTrash: MailTrash
  readonly #sources = new WorkLimiter(sourceLimits)
  #dispatcher: Dispatcher | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#mailTrash = new MailTrash(deps)
  }

  /** Called before the first request. */
  setDispatcher(dispatcher: Dispatcher): void {
    this.#dispatcher = dispatcher
  }

  async list(caller: Caller, identityId: string, filter: EmailFilter): Promise<Page<EmailRow>> {
    await this.#deps.identities.row(caller, identityId)
    const { limit, cursor: _, offset, include, ...named } = filter
    const { database, cursors } = this.#deps
    const name = `emails ${identityId} ${JSON.stringify(named)}`
    const list = { account: caller.account_id, ...selection(identityId, filter) }
    if (include === 'body') {
      const after = cursors.start(name, filter)
      const { seqs, has_more } = await fittingRows(database, { ...list, octets: bodiedEmailSize, after }, limit, offset)
      const data = await this.rowsWithBodies(caller, seqs, list.from)
      return { data, has_more, next_cursor: has_more ? cursors.write(name, seqs.at(-1)!) : null }
    }
    return page<StoredEmail, EmailRow>(database, cursors, filter, {
      ...list,
      name,
      columns: filter.trash ? sql`${rowColumns}, deleted_at` : rowColumns,
      ...(limit > fewRows ? { octets: listedEmailSize } : {}),
      present: emailRow,
    })
  }

  /** The list entries at these positions, in their order, with their bodies. The caller has checked that they fit into one answer. */
  async rowsWithBodies({ account_id }: Caller, seqs: readonly number[], from = sql`emails`): Promise<EmailRow[]> {
    const read = { columns: columnsWithBody, from: withBody(from) }
    const rows = await rowsAt<StoredEmailWithBody>(this.#deps.database, read, [...seqs])
    const emails = await inTurns(rows, (row) => wholeEmail(this.#deps.database, account_id, row))
    return rows.map((row, index) => {
      const { body_text, body_html, text } = emails[index]!
      return { ...emailRow(row), body_text, body_html, text }
    })
  }

  /** Rejects when the signal aborts before a long e-mail is read. */
  async get(caller: Caller, identityId: string, id: string, signal?: AbortSignal): Promise<Email> {
    await this.#deps.identities.row(caller, identityId)
    const row = await this.#withBody(identityId, id)
    const deliveries = row.direction === 'outbound' ? await deliveriesWithHistory(this.#deps.database, id) : []
    return { ...(await wholeEmail(this.#deps.database, caller.account_id, row, signal)), deliveries }
  }

  /** An e-mail without its bodies, which are not read; without deliveries too. */
  async getBrief(caller: Caller, identityId: string, id: string): Promise<Email> {
    return emailWithoutBodies(this.#deps.database, await this.row(caller, identityId, id))
  }

  /** The whole messages of one thread after a sequence number, oldest first, as many as fit into one answer. The caller has checked the thread. */
  async ofThread(
    caller: Caller,
    threadId: string,
    after: number,
    limit: number,
  ): Promise<{ emails: Email[]; next: number | null }> {
    const list = {
      from: sql`emails`,
      where: sql`thread_id = ${threadId}`,
      filters: [sql`duplicate_of IS NULL`],
      octets: wholeEmailSize,
      ascending: true,
      after,
      account: caller.account_id,
    }
    const { seqs, has_more } = await fittingRows(this.#deps.database, list, limit)
    const found = await this.bySeq(caller, seqs)
    return { emails: seqs.flatMap((seq) => found.get(seq) ?? []), next: has_more ? seqs.at(-1)! : null }
  }

  /** A SELECT, without ORDER BY, of the rows of one identity in the timeline. */
  timelineRows(identityId: string): Sql {
    return sql`SELECT seq, created_at FROM emails WHERE identity_id = ${identityId} AND ${inTimeline}`
  }

  /** Position and size of the timeline messages after a sequence number, in order of arrival. */
  timelineEntries({ account_id }: Caller, identityId: string, after: number, limit: number): Promise<TimelineEntry[]> {
    const columns = sql`seq, created_at, ${wholeEmailSize} AS octets`
    const where = sql`identity_id = ${identityId}`
    const list = { columns, from: sql`emails`, where, filters: [inTimeline], ascending: true, after } as const
    return readRows<TimelineEntry>(this.#deps.database, { ...list, account: account_id }, limit)
  }

  /** The whole messages with these sequence numbers. */
  async bySeq({ account_id }: Caller, seqs: readonly number[]): Promise<Map<number, Email>> {
    if (seqs.length === 0) return new Map()
    const rows = await this.#deps.database.all<StoredEmailWithBody>(sql`${selectWithBody} WHERE seq IN (${join([...seqs])})`)
    const emails = await this.#whole(account_id, rows)
    return new Map(rows.map(({ seq }, index) => [seq, emails[index]!]))
  }

  /** The fields of these messages that filters look at, cut to `length` characters; those that were deleted are left out. */
  async briefs(ids: readonly string[], length: number): Promise<Pick<Email, 'id' | 'from' | 'from_name' | 'subject' | 'spam'>[]> {
    const rows = await this.#deps.database.all<Pick<Email, 'id' | 'from' | 'from_name' | 'subject'> & { spam: number }>(
      sql`SELECT id, substr(from_address, 1, ${length}) AS "from", substr(from_name, 1, ${length}) AS from_name,
        substr(subject, 1, ${length}) AS subject, spam FROM emails WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
    )
    return rows.map((row) => ({ ...row, spam: row.spam === 1 }))
  }

  /** Rejects when the signal aborts before a long e-mail is read, which is then changed. */
  async change(caller: Caller, identityId: string, id: string, change: EmailChange, signal: AbortSignal): Promise<Email> {
    const { send_at } = change
    const marks = marksOf(change)
    await this.#deps.database.transaction(async (tx) => {
      await this.#deps.identities.row(caller, identityId, tx)
      const row = await find(tx, identityId, id)
      if (send_at !== undefined) await this.#dispatcher?.reschedule(tx, caller, row, send_at)
      await this.mark(tx, row, marks)
    })
    return this.get(caller, identityId, id, signal)
  }

  /** Throws Fault invalid_request, before anything is written, for more labels than an e-mail can have. */
  async mark(tx: Transaction, row: StoredEmail, { read, labels: change }: Marks): Promise<void> {
    const after = read === undefined ? row.read : read ? 1 : 0
    const labels = withLabels(JSON.parse(row.labels) as string[], change)
    await tx.run(sql`UPDATE emails SET read = ${after}, labels = ${JSON.stringify(labels)} WHERE id = ${row.id}`)
    if (after !== row.read && row.duplicate_of === null) {
      await tx.run(sql`UPDATE threads SET unread_count = unread_count + ${after === 1 ? -1 : 1} WHERE id = ${row.thread_id}`)
    }
  }

  /** Moves the message to the trash, or deletes it permanently with `purge`, also from the trash: its row, its raw content, and its event data. */
  async remove(caller: Caller, identityId: string, id: string, purge: boolean): Promise<{ id: string; deleted: true }> {
    return this.#deps.database.transaction(async (tx) => {
      const { account_id } = await this.#deps.identities.row(caller, identityId, tx)
      if (!(await this.discard(tx, account_id, identityId, id, purge))) throw notFound('e-mail')
      return { id, deleted: true }
    })
  }

  /** The same in a transaction. Returns false where there is none. */
  async discard(tx: Transaction, accountId: string, identityId: string, id: string, purge: boolean): Promise<boolean> {
    const row = await stored(tx, identityId, id)
    if (row) {
      if (row.direction === 'outbound') await this.#dispatcher?.withdraw(tx, id)
      await this.#mailTrash.put(tx, row, accountId)
    } else if (!purge || !(await this.#mailTrash.find(tx, identityId, id))) return false
    if (purge) await this.#deps.trash.purge(tx, this.#mailTrash.kind, id)
    return true
  }

  /** Restores a message from the trash. */
  async restore(caller: Caller, identityId: string, id: string): Promise<Email> {
    await this.#deps.identities.row(caller, identityId)
    const unindexed = await this.#mailTrash.findUnindexed(this.#deps.database, identityId, id)
    const texts = unindexed && (await wholeEmail(this.#deps.database, caller.account_id, unindexed))
    await this.#deps.database.transaction(async (tx) => {
      const { email } = await this.#deps.identities.row(caller, identityId, tx)
      const row = await this.#mailTrash.find(tx, identityId, id)
      if (!row) throw notFound('e-mail in the trash')
      await this.#mailTrash.restore(tx, row, email, texts)
    })
    return this.get(caller, identityId, id)
  }

  /** The raw message with our trace header prepended (RFC 5321 4.4), and without forged fields that bear our name. */
  async raw(caller: Caller, identityId: string, id: string, signal: AbortSignal): Promise<Buffer> {
    const row = await this.row(caller, identityId, id)
    const share = this.#sources.share(caller.account_id)
    try {
      // smtp.size may be above the limit
      share.reserve(Math.min(row.size, sourceLimits.memory.one))
      return await largeWork(caller.account_id, row.size, async () => this.#withTrace(row), signal)
    } finally {
      share.release()
    }
  }

  async #withTrace(row: StoredEmail): Promise<Buffer> {
    const raw = await this.rawMessage(row)
    const whole = withTrace(raw, row.trace, this.#deps.hostname)
    if (whole !== raw) release(raw)
    return whole
  }

  /** The raw message exactly as received. Throws Fault not_found, code `raw_expired`, when it is no longer stored. */
  async rawMessage(row: Pick<StoredEmail, 'raw_id' | 'raw_expired_at'>): Promise<Buffer> {
    requireRaw(row)
    const found = await this.#deps.raw.read(row.raw_id)
    if (!found) throw rawExpired()
    return found
  }

  /** The attachments of an e-mail. */
  async attachmentsOf(row: Pick<StoredEmail, 'detail' | 'body_id'>): Promise<Attachment[]> {
    return (await storedLists(this.#deps.database, row)).attachments
  }

  /** The row of an e-mail that the caller may read. */
  async row(caller: Caller, identityId: string, id: string): Promise<StoredEmail> {
    await this.#deps.identities.row(caller, identityId)
    return find(this.#deps.database, identityId, id)
  }

  /** The row for a signed URL, while the e-mail and its identity exist. */
  async signedRow(id: string): Promise<StoredEmail & { account_id: string }> {
    const row = await this.#deps.database.get<StoredEmail & { account_id: string }>(
      sql`SELECT emails.*, identities.account_id FROM emails JOIN identities ON identities.id = emails.identity_id WHERE emails.id = ${id} AND ${isLiving(iso(this.#deps.clock.now()))}`,
    )
    if (!row) throw notFound('e-mail')
    return row
  }

  async #whole(account: string, rows: StoredEmailWithBody[]): Promise<Email[]> {
    const outbound = rows.filter(({ direction }) => direction === 'outbound').map(({ id }) => id)
    const deliveries = await deliveriesOf(this.#deps.database, outbound)
    return inTurns(rows, async (row) => ({
      ...(await wholeEmail(this.#deps.database, account, row)),
      deliveries: deliveries.get(row.id) ?? [],
    }))
  }

  async #withBody(identityId: string, id: string): Promise<StoredEmailWithBody> {
    const row = await this.#deps.database.get<StoredEmailWithBody>(
      sql`${selectWithBody} WHERE emails.id = ${id} AND identity_id = ${identityId}`,
    )
    if (!row) throw notFound('e-mail')
    return row
  }
}

/** Reads one after the other, with other work in between: decompressing long bodies takes time. */
async function inTurns<Row, Result>(rows: readonly Row[], read: (row: Row) => Promise<Result>): Promise<Result[]> {
  const turns = new Turns()
  const results: Result[] = []
  for (const row of rows) {
    results.push(await read(row))
    if (turns.due) await turns.yield()
  }
  return results
}

async function find(reader: Reader, identityId: string, id: string): Promise<StoredEmail> {
  const row = await stored(reader, identityId, id)
  if (!row) throw notFound('e-mail')
  return row
}

/** The row of an e-mail that is not in the trash. */
export function stored(reader: Reader, identityId: string, id: string): Promise<StoredEmail | undefined> {
  return reader.get<StoredEmail>(sql`SELECT * FROM emails WHERE id = ${id} AND identity_id = ${identityId}`)
}

/** Throws Fault not_found, code `raw_expired`, when the raw message was deleted by retention. */
export function requireRaw({ raw_expired_at }: Pick<StoredEmail, 'raw_expired_at'>): void {
  if (raw_expired_at !== null) throw rawExpired()
}

function rawExpired(): Fault {
  return new Fault('not_found', 'The source of this message is no longer stored (retention.raw); its parsed content is.', {
    code: 'raw_expired',
  })
}

/** What a change asks for, without the two spellings of one flag. */
export interface Marks {
  read: boolean | undefined
  labels: EmailChange['labels']
}

/** Throws Fault invalid_request for `read` and `unread` that contradict each other. */
export function marksOf({ read, unread, labels }: Pick<EmailChange, 'read' | 'unread' | 'labels'>): Marks {
  if (read !== undefined && unread !== undefined && read === unread) {
    throw invalid('unread', 'read and unread contradict each other; send only one of them.')
  }
  return { read: read ?? (unread === undefined ? undefined : !unread), labels }
}

function withLabels(labels: string[], change: EmailChange['labels']): string[] {
  if (!change) return labels
  const kept = new Set([...labels, ...change.add])
  for (const label of change.remove) kept.delete(label)
  if (kept.size > 100) throw invalid('labels', 'An e-mail can have at most 100 labels.')
  return [...kept]
}
