import { createHash } from 'node:crypto'
import { day, iso } from '../core/clock.ts'
import { longestAddress } from '../message/addresses.ts'
import { type Cursors, page } from '../store/page.ts'
import { notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import { type Page, type Paging, picked } from '../core/shapes.ts'
import { oneLine } from '../core/text.ts'
import type { Identities } from '../identities/identities.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'
import { firstOrLastById, mailbox } from './address.ts'
import { type Email, Thread, type ThreadWithMessages } from './model.ts'
import type { ThreadPaging } from './queries.ts'

const month = 30 * day

interface ThreadRow {
  seq: number
  id: string
  identity_id: string
  subject: string
  participants: string
  message_count: number
  unread_count: number
  last_message_at: string
  snippet: string
}

/** The fields of a message that determine its thread. */
export interface ThreadInput {
  identity_id: string
  subject: string
  references: string[]
  in_reply_to: string | null
  /** All addresses of the message except that of the identity. */
  others: string[]
  own: string
}

/** The thread of a message; `fresh` when this is its first message. */
interface ThreadMatch {
  id: string
  participants: string[]
  fresh: boolean
}

/** The addresses of a message without those of the identity: its own address, and the alias at which the message arrived, with any tag. */
export function othersAmong(addresses: string[], own: string, arrivedAt: string): string[] {
  const alias = untagged(arrivedAt)
  const others = addresses.filter((address) => address !== own)
  return alias === own ? others : others.filter((address) => untagged(address) !== alias)
}

function untagged(address: string): string {
  const { local, domain } = mailbox(address, '')
  return `${local}@${domain}`
}

/**
 * Finds the thread of a message, within one identity: by References and In-Reply-To (RFC 5322 3.6.4), else by subject and
 * participants within 30 days; else it is a new thread.
 */
export async function threadOf(tx: Transaction, message: ThreadInput, now: number): Promise<ThreadMatch> {
  const existing = (await byReferences(tx, message)) ?? (await bySubject(tx, message, now))
  if (existing === undefined) return { id: newId('thread'), participants: [], fresh: true }
  return { id: existing.id, participants: JSON.parse(existing.participants) as string[], fresh: false }
}

/** The thread with this id, if it belongs to the identity. */
export async function threadById(tx: Transaction, id: string | null, identityId: string): Promise<ThreadMatch | undefined> {
  if (id === null) return undefined
  const existing = await tx.get<ThreadRef>(
    sql`SELECT id, participants FROM threads WHERE id = ${id} AND identity_id = ${identityId}`,
  )
  return existing && { id: existing.id, participants: JSON.parse(existing.participants) as string[], fresh: false }
}

/** Adds a new message to the thread that `threadOf` returned. */
export async function addToThread(
  tx: Transaction,
  thread: ThreadMatch,
  message: ThreadInput & { seq: number; at: string; snippet: string; participants: string[]; unread: boolean },
): Promise<void> {
  const { seq, at, snippet, subject, identity_id } = message
  const unread = message.unread ? 1 : 0
  const participants = JSON.stringify(uniqueAddresses([...thread.participants, ...message.participants]))
  await tx.run(
    thread.fresh
      ? sql`INSERT INTO threads (id, identity_id, subject, subject_key, participants_key, participants, message_count, unread_count,
          last_message_at, last_seq, snippet) VALUES (${thread.id}, ${identity_id}, ${subject}, ${subjectKey(subject)},
          ${participantsKey(message)}, ${participants}, 1, ${unread}, ${at}, ${seq}, ${snippet})`
      : sql`UPDATE threads SET message_count = message_count + 1, unread_count = unread_count + ${unread},
          last_message_at = CASE WHEN last_message_at > ${at} THEN last_message_at ELSE ${at} END,
          last_seq = ${seq}, snippet = ${snippet}, participants = ${participants} WHERE id = ${thread.id}`,
  )
}

/** Removes a deleted message from its thread, and an empty thread altogether. */
export async function removeFromThread(tx: Transaction, id: string, unread: boolean): Promise<void> {
  await recount(tx, id, { messages: -1, unread: unread ? -1 : 0 })
}

/** Adds a restored message to its former thread, which is created again if necessary. */
export async function restoreToThread(
  tx: Transaction,
  id: string,
  message: Pick<ThreadInput, 'identity_id' | 'subject' | 'others' | 'own'> & { unread: boolean },
): Promise<void> {
  const { identity_id, subject } = message
  await tx.run(
    sql`INSERT INTO threads (id, identity_id, subject, subject_key, participants_key, participants, message_count, unread_count,
      last_message_at, last_seq, snippet) VALUES (${id}, ${identity_id}, ${subject}, ${subjectKey(subject)}, ${participantsKey(message)},
      '[]', 0, 0, '', 0, '') ON CONFLICT DO NOTHING`,
  )
  await recount(tx, id, { messages: 1, unread: message.unread ? 1 : 0 })
}

async function recount(tx: Transaction, id: string, by: { messages: number; unread: number }): Promise<void> {
  const newest = await tx.get<{ seq: number; received_at: string; snippet: string }>(
    sql`SELECT seq, received_at, snippet FROM emails WHERE thread_id = ${id} AND duplicate_of IS NULL ORDER BY seq DESC LIMIT 1`,
  )
  if (!newest) {
    await tx.run(sql`DELETE FROM threads WHERE id = ${id}`)
    return
  }
  const participants = await participantsIn(tx, id)
  await tx.run(
    sql`UPDATE threads SET message_count = message_count + ${by.messages}, unread_count = unread_count + ${by.unread},
      last_message_at = ${newest.received_at}, last_seq = ${newest.seq}, snippet = ${newest.snippet},
      participants = ${JSON.stringify(participants)} WHERE id = ${id}`,
  )
}

/** Messages that are read for the participants of a thread, the newest ones, and bytes of their addresses and names together. */
const maxRecounted = 1000
const maxRecountedOctets = 512 * 1024

/** The participants of the newest messages of a thread. What is too long is not read: `octet_length` needs the sizes only. */
async function participantsIn(tx: Transaction, id: string): Promise<string[]> {
  const found = await tx.all<{ from_address: string; to_text: string }>(
    sql`SELECT from_address, to_text FROM (
        SELECT seq, sum(octets) OVER (ORDER BY seq DESC) AS total FROM (
          SELECT seq, octet_length(from_address) + octet_length(from_name) + octet_length(to_text) AS octets FROM emails
          WHERE thread_id = ${id} AND duplicate_of IS NULL ORDER BY seq DESC LIMIT ${maxRecounted}) AS sized
      ) AS newest JOIN emails ON emails.seq = newest.seq WHERE total <= ${maxRecountedOctets}
      GROUP BY from_address, to_text ORDER BY min(emails.seq)`,
  )
  return uniqueAddresses(found.flatMap((one) => participantsOf(one.from_address, one.to_text)))
}

/** The participants of one message; `to` as in `emails.to_text`. */
export function participantsOf(from: string, to: string): string[] {
  return [from, ...to.split(', ', maxParticipants)]
}

/** Reads the messages of a thread. */
interface ThreadEmails {
  ofThread(caller: Caller, id: string, after: number, limit: number): Promise<{ emails: Email[]; next: number | null }>
}

/** Threads, for API callers. */
export class Threads {
  readonly #database: Database
  readonly #cursors: Cursors
  readonly #identities: Identities
  readonly #emails: ThreadEmails

  constructor(deps: { database: Database; cursors: Cursors; identities: Identities; emails: ThreadEmails }) {
    this.#database = deps.database
    this.#cursors = deps.cursors
    this.#identities = deps.identities
    this.#emails = deps.emails
  }

  async list(caller: Caller, identityId: string, paging: Paging): Promise<Page<Thread>> {
    await this.#identities.row(caller, identityId)
    return page<ThreadRow, Thread>(this.#database, this.#cursors, paging, {
      name: `threads ${identityId}`,
      from: sql`threads`,
      account: caller.account_id,
      where: sql`identity_id = ${identityId}`,
      order: 'last_seq',
      octets: sql`octet_length(subject) + octet_length(participants) + octet_length(snippet)`,
      present: toThread,
    })
  }

  async get(caller: Caller, identityId: string, id: string, { limit, cursor }: ThreadPaging): Promise<ThreadWithMessages> {
    await this.#identities.row(caller, identityId)
    const row = await this.#database.get<ThreadRow>(sql`SELECT * FROM threads WHERE id = ${id} AND identity_id = ${identityId}`)
    if (!row) throw notFound('thread')
    const name = `thread ${id}`
    const { emails, next } = await this.#emails.ofThread(
      caller,
      id,
      cursor === undefined ? 0 : this.#cursors.read(name, cursor),
      limit,
    )
    const next_cursor = next === null ? null : this.#cursors.write(name, next)
    return { ...toThread(row), messages: emails, has_more: next !== null, next_cursor }
  }
}

/** Participants of a thread. */
const maxParticipants = 100

/** Distinct addresses, at most `maxParticipants`; without any that is too long, as messages stored earlier and imported ones have. */
function uniqueAddresses(addresses: string[]): string[] {
  return [...new Set(addresses)].filter((address) => address.length <= longestAddress).slice(0, maxParticipants)
}

type ThreadRef = { id: string; participants: string }

async function byReferences(tx: Transaction, message: ThreadInput): Promise<ThreadRef | undefined> {
  const ids = [...new Set([...message.references.slice(-50), ...(message.in_reply_to ? [message.in_reply_to] : [])])]
  if (ids.length === 0) return undefined
  return tx.get<ThreadRef>(
    sql`SELECT threads.id, threads.participants FROM ${firstOrLastById(message.identity_id, ids, 'last')} JOIN emails ON emails.seq = named.seq
      JOIN threads ON threads.id = emails.thread_id ORDER BY emails.seq DESC LIMIT 1`,
  )
}

async function bySubject(tx: Transaction, message: ThreadInput, now: number): Promise<ThreadRef | undefined> {
  const key = subjectKey(message.subject)
  if (key === '') return undefined
  return tx.get<ThreadRef>(
    sql`SELECT id, participants FROM threads WHERE identity_id = ${message.identity_id} AND subject_key = ${key}
      AND participants_key = ${participantsKey(message)} AND last_message_at > ${iso(now - month)}
      ORDER BY last_message_at DESC, seq DESC LIMIT 1`,
  )
}

/** The subject without reply and forward prefixes of common languages, ignoring case and white space (RFC 5256 2.1). */
function subjectKey(subject: string): string {
  let text = subject.slice(0, 500).normalize('NFKC').toLowerCase()
  for (let before = ''; before !== text;) {
    before = text
    text = text.replace(
      /^\s*(?:re|fwd?|aw|wg|sv|vs|antw|odp|rif|tr|res|enc|ynt|回复|回覆|转发|轉寄|答复)(?:\[\d+\])?\s*[:：]\s*/u,
      '',
    )
  }
  return oneLine(text)
}

function participantsKey(message: Pick<ThreadInput, 'own' | 'others'>): string {
  const all = [...new Set([message.own, ...message.others].map((address) => address.toLowerCase()))].toSorted()
  const text = all.join(' ')
  return text.length <= 200 ? text : createHash('sha256').update(text).digest('base64url')
}

function toThread(row: ThreadRow): Thread {
  return picked(Thread, { ...row, participants: JSON.parse(row.participants) as string[] })
}
