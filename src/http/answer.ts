import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type * as z from 'zod'
import { type Caller, may } from '../core/scopes.ts'
import { ranged } from './download.ts'
import { type AnyRoute, type Download, readersOf } from './route.ts'
import { Fault } from '../core/fault.ts'
import type { Answer } from './response.ts'

const json = 'application/json; charset=utf-8'

const longText = 8192

export function jsonAnswer(status: number, body: string, headers: Record<string, string> = {}): Answer {
  // a short text leaves in one write with its headers; a long one is better encoded once, not measured and encoded again
  return { status, type: json, body: body.length < longText ? body : Buffer.from(body), headers }
}

/** The handler's result through the reply schema: a field it does not name stays here; one that does not fit is a bug. */
export function present(route: AnyRoute, result: unknown): Answer {
  const shown = route.reply ? parse(route.reply, result) : {}
  const location = route.location?.(shown as never)
  const answer = jsonAnswer(route.status ?? 200, JSON.stringify(shown), location === undefined ? {} : { Location: location })
  return route.cookie ? { ...answer, cookie: route.cookie(result as never) } : answer
}

/** What of the answer to a write its caller is shown: a receipt, where they may not read what they have written to. */
export function shownTo(route: AnyRoute, caller: Pick<Caller, 'scopes'>, answer: Answer): Answer {
  const readers = answer.status < 400 && answer.type === json ? readersOf(route) : undefined
  if (!readers || may(caller, readers.scopes)) return answer
  const whole = JSON.parse(textOf(answer)) as Record<string, unknown>
  const receipt = Object.fromEntries(Object.entries(whole).filter(([name]) => readers.fields.includes(name)))
  return { ...answer, body: JSON.stringify(receipt) }
}

/** The JSON of an answer that is one. */
export function textOf({ body }: Answer): string {
  return typeof body === 'string' ? body : (body as Buffer).toString()
}

/** As `present`, for whoever keeps it: an empty 304 where they have it already (RFC 9110 13.1.2). */
export function presentDocument(route: AnyRoute, result: object, ifNoneMatch: string | undefined): Answer {
  const { answer, tag } = documents.get(result) ?? written(route, result)
  const { headers } = answer
  const known = (ifNoneMatch ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''))
  return known.includes(tag) || ifNoneMatch?.trim() === '*'
    ? { ...answer, status: 304, body: '', headers: { ...headers } }
    : { ...answer, headers: { ...headers } }
}

/** Documents by the result they were made of: a handler that answers the same object again has it written once. */
const documents = new WeakMap<object, { answer: Answer; tag: string }>()

function written(route: AnyRoute, result: object): { answer: Answer; tag: string } {
  const answer = present(route, result)
  const digest = createHash('sha256').update(answer.body as string | Buffer)
  const tag = `"${digest.digest('base64url').slice(0, 27)}"`
  const headers = { ...answer.headers, ETag: tag, 'Cache-Control': 'public, max-age=300' }
  const document = { answer: { ...answer, headers }, tag }
  documents.set(result, document)
  return document
}

export function presentDownload(result: unknown, range: string | undefined, ifRange: string | undefined): Answer {
  if (!isDownload(result)) throw new Error('The handler of a download did not answer one')
  return ranged(result, range, ifRange)
}

function parse(schema: z.ZodType, value: unknown): unknown {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  throw new Error(`The reply does not fit its schema: ${issue.path.map(String).join('.')}: ${issue.message}`)
}

function isDownload(value: unknown): value is Download {
  if (typeof value !== 'object' || value === null || !('bytes' in value) || !('type' in value)) return false
  return typeof value.type === 'string' && (Buffer.isBuffer(value.bytes) || value.bytes instanceof Readable)
}

/**
 * Octets of answers that wait to be read. Of callers of one account or, without a key, one network: above it no further answer is made; two of the
 * largest. Of all: above it connections are closed.
 */
const most = { one: 48 * 1024 * 1024, all: 144 * 1024 * 1024 }

interface Unread {
  octets: number
  hangUp: () => void
}

/** What answers hold of memory until they are written to their connections. */
export class UnreadAnswers {
  readonly #held = new Map<string, { octets: number; answers: Set<Unread> }>()
  #all = 0

  /** Throws Fault rate_limited, code `too_much_unread`, where no further answer is made for now. */
  require(holder: string): void {
    if ((this.#held.get(holder)?.octets ?? 0) <= most.one) return
    throw new Fault(
      'rate_limited',
      `More than ${most.one} octets of answers to you wait to be read. Read them, or close their connections, and send this again.`,
      { code: 'too_much_unread', retryAfter: 1 },
    )
  }

  /**
   * Answers how to give back what an answer of so many octets takes. Where all take too much together, whoever has left most unread is hung up on,
   * with the oldest answer first: a refusal would be for those who read theirs.
   */
  hold(holder: string, octets: number, hangUp: () => void): () => void {
    const held = this.#held.get(holder) ?? { octets: 0, answers: new Set() }
    const unread = { octets, hangUp }
    this.#held.set(holder, held)
    held.answers.add(unread)
    held.octets += octets
    this.#all += octets
    while (this.#all > most.all) this.#hangUpOnLargest()
    return () => this.#release(holder, unread)
  }

  #release(holder: string, unread: Unread): void {
    const held = this.#held.get(holder)
    if (!held?.answers.delete(unread)) return
    held.octets -= unread.octets
    this.#all -= unread.octets
    if (held.answers.size === 0) this.#held.delete(holder)
  }

  #hangUpOnLargest(): void {
    let [largest] = this.#held
    for (const one of this.#held) if (one[1].octets > largest![1].octets) largest = one
    const [holder, { answers }] = largest!
    const [oldest] = answers
    this.#release(holder, oldest!)
    oldest!.hangUp()
  }
}
