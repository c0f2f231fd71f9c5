import { signal } from '@preact/signals'

/** An error of the API, or of the connection: then `status` is 0 and `code` is `unreachable`. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  /** The field or parameter it is about. */
  readonly param: string | undefined

  constructor(message: string, about: { status: number; code: string; param?: string | undefined }) {
    super(message)
    this.status = about.status
    this.code = about.code
    this.param = about.param
  }
}

/** Converts any error to a sentence; unexpected ones are reported as well. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  // errors of the browser, such as for a file that is gone, are no bugs
  if (!(error instanceof DOMException)) reportError(error)
  return new ApiError(`Failed: ${(error as Error).message}`, { status: 0, code: 'unexpected' })
}

/** The error itself; throws any that is not of the API. */
export function requireApiError(error: unknown): ApiError {
  if (!(error instanceof ApiError)) throw error
  return error
}

export interface Page<Row> {
  data: Row[]
  has_more: boolean
  next_cursor: string | null
}

interface Options {
  /** The caller handles a 401; no sign-in dialog. */
  quiet?: boolean
  /** The call is sent without an idempotency key: it can be repeated, and a stored response would not repeat it. */
  idempotent?: boolean
}

/** True if the session has ended, and calls wait for a new sign-in. */
export const expired = signal(false)

let waiting: (() => void)[] = []

/** Repeats the waiting calls after a sign-in. */
export function resume(): void {
  const calls = waiting
  waiting = []
  expired.value = false
  for (const goOn of calls) goOn()
}

/** Idempotency keys of POSTs whose result is unknown, and when they expire: repeating the same request until then reuses the key. */
const doubtful = new Map<string, { key: string; until: number }>()

/** In milliseconds. The same request after that is meant as another one. */
const doubt = 120_000

/** The most such keys, as bodies may be large; the oldest are dropped. */
const maxDoubtful = 5

/** Calls the public API with the browser's session. Throws ApiError; a call without a valid session waits for the next one. */
async function call<Answer>(method: string, path: string, body?: unknown, options: Options = {}): Promise<Answer> {
  const json = body === undefined ? undefined : JSON.stringify(body)
  const ask = async (more: Record<string, string> = {}): Promise<Answer> => {
    const init = json === undefined ? { headers: more } : { headers: { 'Content-Type': 'application/json', ...more }, body: json }
    const text = await textOf(path, { method, ...init }, options.quiet)
    return (text === '' ? undefined : JSON.parse(text)) as Answer
  }
  if (method !== 'POST' || options.idempotent) return ask()
  const same = `${path} ${json}`
  const before = doubtful.get(same)
  const key = before && Date.now() < before.until ? before.key : crypto.randomUUID()
  try {
    const answer = await ask({ 'Idempotency-Key': key })
    doubtful.delete(same)
    return answer
  } catch (error) {
    doubtful.delete(same)
    if (error instanceof ApiError && (error.status === 0 || error.status >= 500))
      doubtful.set(same, { key, until: Date.now() + doubt })
    if (doubtful.size > maxDoubtful) doubtful.delete(doubtful.keys().next().value!)
    throw error
  }
}

/** Posts a file as the raw body. Throws as `call` does. */
export async function upload<Answer>(path: string, file: Blob): Promise<Answer> {
  const headers = { 'Content-Type': 'application/octet-stream' }
  return JSON.parse(await textOf(path, { method: 'POST', body: file, headers })) as Answer
}

export function get<Answer>(path: string, options?: Options): Promise<Answer> {
  return call('GET', path, undefined, options)
}

export function post<Answer>(path: string, body: unknown = {}, options?: Options): Promise<Answer> {
  return call('POST', path, body, options)
}

export function patch<Answer>(path: string, body: unknown): Promise<Answer> {
  return call('PATCH', path, body)
}

export function remove<Answer>(path: string, body?: unknown): Promise<Answer> {
  return call('DELETE', path, body)
}

/** The text of a response that is not JSON. Throws as `call` does. */
export function getText(path: string, headers: Record<string, string> = {}): Promise<string> {
  return textOf(path, { headers })
}

async function textOf(path: string, init: RequestInit, quiet = false): Promise<string> {
  for (;;) {
    let response: Response
    let text: string
    try {
      response = await fetch(path, { credentials: 'same-origin', ...init })
      text = await response.text()
    } catch {
      throw new ApiError('The box cannot be reached. Nothing was lost: try again.', { status: 0, code: 'unreachable' })
    }
    if (response.ok) return text
    if (response.status !== 401 || quiet) throw errorOf(response.status, text)
    expired.value = true
    await new Promise<void>((resolve) => waiting.push(resolve))
  }
}

function errorOf(status: number, text: string): ApiError {
  try {
    const { message, code, param } = JSON.parse(text).error
    return new ApiError(message, { status, code, param })
  } catch {
    return new ApiError(`The box, or a reverse proxy in front of it, answered ${status} without a reason.`, {
      status,
      code: 'unknown',
    })
  }
}

/** The path and query of a URL of the box: the page may use another host name than the configured one. */
export function pathOf(url: string): string {
  const { pathname, search } = new URL(url)
  return pathname + search
}

/** Appends a query, without undefined and empty values. */
export function withQuery(path: string, query: Record<string, string | number | boolean | undefined>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return search === '' ? path : `${path}?${search}`
}
