import { ConnectionError, errorFrom, PillarboxError, TimeoutError } from './errors.ts'

/** Options of every call. */
export interface RequestOptions {
  /** Aborts the call, which then rejects with the reason of the signal. */
  signal?: AbortSignal | undefined
  /** Seconds that one attempt may take; 60 by default. */
  timeout?: number | undefined
  /** Attempts after the first; 3 by default. */
  retries?: number | undefined
  /** Of calls that create or send: the same key with the same call has one effect. Made up for each call when it is left out. */
  idempotencyKey?: string | undefined
}

/** A request before its attempts. */
export interface Call {
  method: string
  /** Below `/v1`. */
  path: string
  query?: object | undefined
  /** An object is sent as JSON. */
  body?: object | undefined
  octets?: Uint8Array | Blob | undefined
  /** `text` and `bytes` come as they are; anything else is JSON. */
  answer?: string | undefined
  /** The id of what is deleted. */
  deletes?: string | undefined
}

export interface TransportOptions extends Pick<RequestOptions, 'timeout' | 'retries'> {
  baseUrl: string
  apiKey?: string | undefined
  fetch?: typeof fetch | undefined
}

/** A `Retry-After` above this is left to the caller, in seconds. */
const longestPause = 60

/** Makes calls, and repeats those that may be repeated. */
export class Transport {
  readonly #options: TransportOptions
  readonly #url: string
  /** What the last `Date` of an answer was, and when it came by the monotonic clock, both in milliseconds. */
  #told: { date: number; at: number } | undefined

  constructor(options: TransportOptions) {
    this.#options = options
    const { baseUrl } = options
    if (typeof baseUrl !== 'string' || !/^https?:\/\/[^/?#]+(\/[^?#]*)?$/.test(baseUrl)) {
      throw new PillarboxError('baseUrl must be the URL of a box, such as https://box.example.com', 'bad_base_url')
    }
    this.#url = `${baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`
  }

  /** The time of the box in milliseconds, by its last answer: the clock of this machine may be wrong. Undefined before any told it. */
  get boxTime(): number | undefined {
    return this.#told && this.#told.date + performance.now() - this.#told.at
  }

  async send(call: Call, options: RequestOptions = {}): Promise<unknown> {
    const { retries = this.#options.retries ?? 3, signal } = options
    const headers: Record<string, string> = isOnce(call)
      ? { 'Idempotency-Key': options.idempotencyKey ?? crypto.randomUUID() }
      : {}
    let lost = false
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#attempt(call, headers, options)
      } catch (error) {
        // the attempt whose answer was lost has deleted it
        if (lost && (error as PillarboxError).type === 'not_found') return { id: call.deletes, deleted: true }
        const seconds = attempt < retries ? pauseBefore(error, attempt, call) : undefined
        if (seconds === undefined) throw error
        lost ||= call.deletes !== undefined && (error as PillarboxError).status !== 429
        await pause(seconds, signal)
      }
    }
  }

  async #attempt(call: Call, headers: Record<string, string>, options: RequestOptions): Promise<unknown> {
    const { apiKey, fetch: send = fetch } = this.#options
    const { timeout = this.#options.timeout ?? 60, signal } = options
    const limit = AbortSignal.timeout(timeout * 1000)
    const { method, path, query, body, octets, answer } = call
    const what = `${method} ${this.#url}${path}`
    const type = octets ? 'application/octet-stream' : body ? 'application/json' : undefined
    try {
      const response = await send(`${this.#url}${path}${searchOf(query)}`, {
        method,
        headers: {
          ...(apiKey && { Authorization: `Bearer ${apiKey}` }),
          ...(type && { 'Content-Type': type }),
          ...headers,
        },
        ...(octets || body ? { body: (octets as Blob | undefined) ?? JSON.stringify(body) } : {}),
        // a page of the box, or of an origin that it allows, has the cookie of a session instead of a key
        credentials: apiKey === undefined ? 'include' : 'omit',
        redirect: 'manual',
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      })
      const date = Date.parse(response.headers.get('Date') ?? '')
      if (!Number.isNaN(date)) this.#told = { date, at: performance.now() }
      if (!response.ok) throw errorFrom(response, await response.text())
      if (answer === 'bytes') return new Uint8Array(await response.arrayBuffer())
      return answer === 'text' ? await response.text() : await response.json()
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (error instanceof PillarboxError) throw error
      if (limit.aborted) throw new TimeoutError(`${what} was not answered within ${timeout} s.`, 'timeout')
      const { message, cause } = error as Error & { cause?: { message?: string } }
      throw new ConnectionError(`${what} failed: ${cause?.message ?? message}`, 'connection_failed', { cause: error })
    }
  }
}

/** True if it takes an Idempotency-Key. */
function isOnce({ method, octets }: Call): boolean {
  return method === 'POST' && !octets
}

/** Seconds before the next attempt; undefined when there must be none. */
function pauseBefore(error: unknown, attempt: number, call: Call): number | undefined {
  if (!(error instanceof PillarboxError)) return undefined
  const { status = 500, code, retry_after } = error
  // a 429 had no effect; the first attempt may still be under way; anything else may have had one, which only some calls allow twice
  const may = status === 429 || code === 'idempotency_in_flight' || (status >= 500 && (call.method !== 'POST' || isOnce(call)))
  if (!may || (retry_after ?? 0) > longestPause) return undefined
  return Math.max(retry_after ?? 0, backoff(attempt, 8))
}

/** Half a second, doubled with each attempt up to `most`, less up to a half by chance: those who failed together do not come back together. */
export function backoff(attempt: number, most: number): number {
  return Math.min(most, 0.5 * 2 ** attempt) * (0.5 + Math.random() / 2)
}

export function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal!.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, seconds * 1000)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}

function searchOf(query: object = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query) as [string, string | number | boolean | Date | null | undefined][]) {
    if (value !== undefined && value !== null) search.append(name, value instanceof Date ? value.toISOString() : String(value))
  }
  return search.size === 0 ? '' : `?${search}`
}
