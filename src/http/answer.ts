import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type * as z from 'zod'
import { may } from '../core/scopes.ts'
import type { Caller } from '../core/scopes.ts'
import { ranged } from './download.ts'
import { readersOf } from './route.ts'
import type { AnyRoute, Download, SessionCookie } from './route.ts'

/** What goes out: bytes and the headers that belong to them. */
export interface Answer {
  status: number
  type: string
  body: string | Buffer | Readable
  headers: Record<string, string>
  cookie?: SessionCookie
}

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
