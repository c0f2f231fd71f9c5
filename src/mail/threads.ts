import { createHash } from 'node:crypto'
import { iso } from '../core/clock.ts'
import type { Cursors } from '../core/cursor.ts'
import { notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import type { Paging } from '../core/shapes.ts'
import type { Identities } from '../identities/identities.ts'
import { join, sql } from '../store/database.ts'
import type { Database, Transaction } from '../store/database.ts'
import { page } from '../store/page.ts'
import type { Emails } from './emails.ts'
import type { Thread, ThreadWithMessages } from './model.ts'

const month = 30 * 86_400_000

interface ThreadRow {
  seq: number
  id: string
  identity_id: string
  subject: string
  participants: string
  message_count: number
  unread_count: number
  last_message_at: string
  last_seq: number
  snippet: string
}

/** What decides where a message belongs. */
export interface Threaded {
  identity_id: string
  subject: string
  references: string[]
  in_reply_to: string | null
  /** Everybody on the message but the identity itself. */
  others: string[]
  own: string
}

/**
 * The conversation a message belongs to, inside one identity: by References and In-Reply-To (RFC 5322 3.6.4), else by subject and
 * participants within 30 days; else a new one.
 */
export async function threadOf(tx: Transaction, message: Threaded, now: number): Promise<string> {
  const known = (await byReferences(tx, message)) ?? (await bySubject(tx, message, now))
  if (known !== undefined) return known
  const id = newId('thread')
  await tx.run(
    sql`INSERT INTO threads (id, identity_id, subject, subject_key, participants_key, participants, message_count, unread_count, last_message_at,
      last_seq, snippet) VALUES (${id}, ${message.identity_id}, ${message.subject}, ${subjectKey(message.subject)}, ${participantsKey(message)},
      '[]', 0, 0, ${iso(now)}, 0, '')`,
  )
  return id
}

/** Counts a message into its thread. */
export async function addToThread(
  tx: Transaction,
  id: string,
  message: { seq: number; at: string; snippet: string; unread: boolean; participants: string[] },
): Promise<void> {
  const row = await tx.get<{ participants: string }>(sql`SELECT participants FROM threads WHERE id = ${id}`)
  const before = JSON.parse(row!.participants) as string[]
  const participants = together([...before, ...message.participants])
  await tx.run(
    sql`UPDATE threads SET message_count = message_count + 1, unread_count = unread_count + ${message.unread ? 1 : 0},
      last_message_at = ${message.at}, last_seq = ${message.seq}, snippet = ${message.snippet}, participants = ${JSON.stringify(participants)}
      WHERE id = ${id}`,
  )
}

/** Takes a message that was just deleted out of its thread, so that nothing of it shows there; an empty thread goes. */
export async function takeFromThread(tx: Transaction, id: string, unread: boolean): Promise<void> {
  const left = await tx.all<{ seq: number; received_at: string; snippet: string; from_address: string; to_text: string }>(
    sql`SELECT seq, received_at, snippet, from_address, to_text FROM emails WHERE thread_id = ${id} AND deleted_at IS NULL
      AND duplicate_of IS NULL ORDER BY seq DESC LIMIT 1000`,
  )
  const [newest] = left
  if (!newest) {
    await tx.run(sql`DELETE FROM threads WHERE id = ${id}`)
    return
  }
  const participants = together(left.toReversed().flatMap((one) => [one.from_address, one.to_text]))
  await tx.run(
    sql`UPDATE threads SET message_count = message_count - 1, unread_count = unread_count - ${unread ? 1 : 0},
      last_message_at = ${newest.received_at}, last_seq = ${newest.seq}, snippet = ${newest.snippet},
      participants = ${JSON.stringify(participants)} WHERE id = ${id}`,
  )
}

/** Conversations, for callers. */
export class Threads {
  readonly #database: Database
  readonly #cursors: Cursors
  readonly #identities: Identities
  readonly #emails: Emails

  constructor(parts: { database: Database; cursors: Cursors; identities: Identities; emails: Emails }) {
    this.#database = parts.database
    this.#cursors = parts.cursors
    this.#identities = parts.identities
    this.#emails = parts.emails
  }

  async list(
    caller: Caller,
    identityId: string,
    paging: Paging,
  ): Promise<{ data: Thread[]; has_more: boolean; next_cursor: string | null }> {
    await this.#identities.row(caller, identityId)
    return page<ThreadRow, Thread>(this.#database, this.#cursors, paging, {
      name: `threads ${identityId}`,
      select: sql`SELECT * FROM threads`,
      where: sql`identity_id = ${identityId}`,
      order: 'last_seq',
      present: shown,
    })
  }

  async get(caller: Caller, identityId: string, id: string): Promise<ThreadWithMessages> {
    await this.#identities.row(caller, identityId)
    const row = await this.#database.get<ThreadRow>(sql`SELECT * FROM threads WHERE id = ${id} AND identity_id = ${identityId}`)
    if (!row) throw notFound('thread')
    return { ...shown(row), messages: await this.#emails.ofThread(id) }
  }
}

/** Each address once, at most a hundred. */
function together(addresses: string[]): string[] {
  return [...new Set(addresses)].slice(0, 100)
}

async function byReferences(tx: Transaction, message: Threaded): Promise<string | undefined> {
  const ids = [...new Set([...message.references.slice(-50), ...(message.in_reply_to ? [message.in_reply_to] : [])])]
  if (ids.length === 0) return undefined
  const row = await tx.get<{ thread_id: string }>(
    sql`SELECT thread_id FROM emails WHERE identity_id = ${message.identity_id} AND message_id IN (${join(ids)}) AND deleted_at IS NULL
      ORDER BY seq DESC LIMIT 1`,
  )
  return row?.thread_id
}

async function bySubject(tx: Transaction, message: Threaded, now: number): Promise<string | undefined> {
  const key = subjectKey(message.subject)
  if (key === '') return undefined
  const row = await tx.get<{ id: string }>(
    sql`SELECT id FROM threads WHERE identity_id = ${message.identity_id} AND subject_key = ${key}
      AND participants_key = ${participantsKey(message)} AND last_message_at > ${iso(now - month)} ORDER BY seq DESC LIMIT 1`,
  )
  return row?.id
}

/** The subject without reply and forward prefixes of the usual languages, case and white space (RFC 5256 2.1). */
function subjectKey(subject: string): string {
  let text = subject.slice(0, 500).normalize('NFKC').toLowerCase()
  for (let before = ''; before !== text;) {
    before = text
    text = text.replace(
      /^\s*(?:re|fwd?|aw|wg|sv|vs|antw|odp|rif|tr|res|enc|ynt|回复|回覆|转发|轉寄|答复)(?:\[\d+\])?\s*[:：]\s*/u,
      '',
    )
  }
  return text.replace(/\s+/g, ' ').trim()
}

function participantsKey(message: Threaded): string {
  const all = [...new Set([message.own, ...message.others].map((address) => address.toLowerCase()))].toSorted()
  return createHash('sha256').update(all.join('\n')).digest('base64url').slice(0, 22)
}

function shown(row: ThreadRow): Thread {
  const { id, identity_id, subject, message_count, unread_count, last_message_at, snippet } = row
  return {
    id,
    identity_id,
    subject,
    participants: JSON.parse(row.participants) as string[],
    message_count,
    unread_count,
    last_message_at,
    snippet,
  }
}
