import { apiKey, type Answered, type RunningBox } from '../box/world.ts'

/** What a call is made with. */
export interface With {
  body?: object
  /** Of the account of the operator unless said. */
  key?: string
  /** Of a session, instead of a key. */
  cookie?: string
  idempotency?: string
}

export interface Reply {
  status: number
  body: Answered
  /** Of a session that began. */
  cookie: string
}

/** A box has no such call. */
export class UnknownCall extends Error {}

/** Makes a call; throws UnknownCall where the box does not have it. */
export async function reply(box: RunningBox, method: string, path: string, given: With = {}): Promise<Reply> {
  const { body, key = apiKey, cookie, idempotency } = given
  const response = await fetch(`${box.api}${path}`, {
    method,
    signal: AbortSignal.timeout(60_000),
    headers: {
      Origin: box.api,
      ...(cookie === undefined ? { Authorization: `Bearer ${key}` } : { Cookie: cookie }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(idempotency === undefined ? {} : { 'Idempotency-Key': idempotency }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const content = text === '' ? {} : (JSON.parse(text) as Answered)
  const { code } = (content['error'] ?? {}) as { code?: string }
  if (code === 'unknown_path') throw new UnknownCall(`${method} ${path}`)
  // on a machine that has no time for it; nothing was done
  if (code === 'request_timeout') return reply(box, method, path, given)
  const cookies = response.headers.getSetCookie()
  return { status: response.status, body: content, cookie: (cookies[0] ?? '').split(';', 1)[0]! }
}

/** As `reply`, of a call that must succeed. */
export async function made(box: RunningBox, method: string, path: string, given: With = {}): Promise<Answered> {
  const { status, body } = await reply(box, method, path, given)
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`)
  return body
}
