import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type * as z from 'zod'
import { isLong, writeLongJson } from '../../core/long-json.ts'
import { longWork } from '../../core/work/long-work.ts'
import { memoryPool } from '../../core/memory-pool.ts'
import { type Caller, may } from '../../core/scopes.ts'
import { Fault } from '../../core/fault.ts'
import { type Answer, type AnyRoute, type Download, readersOf } from '../route.ts'
import { ranged } from './download.ts'
import { shaped, unsure } from './shaped.ts'

const json = 'application/json; charset=utf-8'

const longText = 8192

export function jsonAnswer(status: number, body: string | Buffer, headers: Record<string, string> = {}): Answer {
  // a short text is written together with its headers; a long one is encoded once, instead of measured and then encoded
  return { status, type: json, body: typeof body === 'string' && body.length >= longText ? Buffer.from(body) : body, headers }
}

/** The account in whose turn a long response is written, and `requireRead`: throws Fault when too much is unread. */
interface Recipient {
  account: string
  requireRead: () => void
}

/**
 * Filters the result of a handler by the reply schema: other fields are dropped; a value that does not match is a bug. A long response is written
 * in the account's turn and in pieces; one that has no effect only if enough of those before it has been read.
 */
export function present(route: AnyRoute, result: unknown, { account, requireRead }: Recipient): Answer | Promise<Answer> {
  if (route.shared) return presentShared(route, result as object)
  const reply = replyOf(route, result)
  if (!isLong(reply)) return presented(route, result, reply, JSON.stringify(reply))
  const body = longWork('write', account, () => {
    if (route.method === 'GET' && !route.effect) requireRead()
    return writeLongJson(reply)
  })
  return body.then((bytes) => presented(route, result, reply, bytes))
}

/** The result itself as `reply`, for a call that is made within the box: neither checked nor written. */
export function presentUnwritten(route: AnyRoute, result: unknown): Answer {
  return presented(route, result, route.reply ? result : {}, '')
}

/** Responses by the result of the handler, so that the same object is written once. */
const sharedAnswers = new WeakMap<object, Answer>()

function presentShared(route: AnyRoute, result: object): Answer {
  const known = sharedAnswers.get(result)
  if (known) return known
  const reply = replyOf(route, result)
  const answer = presented(route, result, reply, JSON.stringify(reply))
  sharedAnswers.set(result, answer)
  return answer
}

function replyOf(route: AnyRoute, result: unknown): unknown {
  return route.reply ? parse(route.reply, result) : {}
}

function presented(route: AnyRoute, result: unknown, reply: unknown, body: string | Buffer): Answer {
  const location = route.location?.(reply as never)
  const answer = jsonAnswer(route.status ?? 200, body, location === undefined ? {} : { Location: location })
  return { ...answer, reply, ...(route.cookie ? { cookie: route.cookie(result as never) } : {}) }
}

/** The part of the response to a write that its caller may see: a receipt for callers without the scope to read. */
export function visibleTo(route: AnyRoute, caller: Pick<Caller, 'scopes'>, answer: Answer): Answer {
  const readers = answer.status < 400 && answer.type === json ? readersOf(route) : undefined
  if (!readers || may(caller, readers.scopes)) return answer
  const whole = answer.reply ?? JSON.parse(textOf(answer))
  const receipt = Object.fromEntries(Object.entries(whole as object).filter(([name]) => readers.fields.includes(name)))
  return { ...answer, reply: receipt, body: JSON.stringify(receipt) }
}

/** The text of a JSON response. */
export function textOf({ body }: Answer): string {
  return typeof body === 'string' ? body : (body as Buffer).toString()
}

/** The same as `present`, for cacheable documents: an empty 304 when the client has the current version (RFC 9110 13.1.2). */
export function presentDocument(route: AnyRoute, result: object, ifNoneMatch: string | undefined): Answer {
  const { answer, tag } = documents.get(result) ?? written(route, result)
  const { headers } = answer
  const known = (ifNoneMatch ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''))
  return known.includes(tag) || ifNoneMatch?.trim() === '*'
    ? { ...answer, status: 304, body: '', headers: { ...headers } }
    : { ...answer, headers: { ...headers } }
}

/** Serialized documents by the result of the handler, so that the same object is serialized once. */
const documents = new WeakMap<object, { answer: Answer; tag: string }>()

function written(route: AnyRoute, result: object): { answer: Answer; tag: string } {
  const reply = replyOf(route, result)
  const answer = presented(route, result, reply, JSON.stringify(reply))
  const digest = createHash('sha256').update(answer.body as string | Buffer)
  const tag = `"${digest.digest('base64url').slice(0, 27)}"`
  const headers = { ...answer.headers, ETag: tag, 'Cache-Control': 'public, max-age=300' }
  const document = { answer: { ...answer, headers }, tag }
  documents.set(result, document)
  return document
}

export function presentDownload(result: unknown, range: string | undefined, ifRange: string | undefined): Answer {
  if (!isDownload(result)) throw new Error('The handler of a download did not return one')
  return ranged(result, range, ifRange)
}

function parse(schema: z.ZodType, value: unknown): unknown {
  const shape = shaped(schema, value)
  if (shape !== unsure) return shape
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  throw new Error(`The response does not match its schema: ${issue.path.map(String).join('.')}: ${issue.message}`)
}

function isDownload(value: unknown): value is Download {
  if (typeof value !== 'object' || value === null || !('bytes' in value) || !('type' in value)) return false
  return typeof value.type === 'string' && (Buffer.isBuffer(value.bytes) || value.bytes instanceof Readable)
}

/**
 * Bytes of responses that clients have not read yet: two of the largest. Above, of one account or, without a key, one network, no further response is
 * made; of all together, connections are closed while all kinds of memory are too much.
 */
const maxUnread = 48 * 1024 * 1024

interface Unread {
  bytes: number
  disconnect: () => void
}

/** Limits the memory of responses until they are written to their connections. */
export class UnreadAnswers {
  readonly #holders = new Map<string, { bytes: number; answers: Set<Unread> }>()
  #all = 0

  /** Throws Fault rate_limited, code `too_much_unread`, when the limit of the holder is reached. */
  require(holder: string): void {
    const held = this.#holders.get(holder)?.bytes ?? 0
    if (held <= maxUnread && (held === 0 || memoryPool.hasRoom(holder, 0))) return
    throw new Fault(
      'rate_limited',
      `Too many bytes of responses have not been read by this account, of at most ${maxUnread}. Read them, or close their connections, then retry.`,
      { code: 'too_much_unread', retryAfter: 1 },
    )
  }

  /**
   * Counts the bytes of a response; returns a function that releases them. When the total is exceeded, the connections of the holder with the most
   * unread bytes are closed, the oldest response first.
   */
  add(holder: string, bytes: number, disconnect: () => void): () => void {
    const held = this.#holders.get(holder) ?? { bytes: 0, answers: new Set() }
    const unread = { bytes, disconnect }
    this.#holders.set(holder, held)
    held.answers.add(unread)
    held.bytes += bytes
    this.#all += bytes
    memoryPool.add(holder, bytes)
    while (memoryPool.isOver && this.#all > maxUnread) this.#disconnectLargest()
    return () => this.#release(holder, unread)
  }

  #release(holder: string, unread: Unread): void {
    const held = this.#holders.get(holder)
    if (!held?.answers.delete(unread)) return
    held.bytes -= unread.bytes
    this.#all -= unread.bytes
    memoryPool.add(holder, -unread.bytes)
    if (held.answers.size === 0) this.#holders.delete(holder)
  }

  #disconnectLargest(): void {
    let [largest] = this.#holders
    for (const one of this.#holders) if (one[1].bytes > largest![1].bytes) largest = one
    const [holder, { answers }] = largest!
    const [oldest] = answers
    this.#release(holder, oldest!)
    oldest!.disconnect()
  }
}
