import type { Clock } from '../../core/clock.ts'
import { retryAfter } from '../../queue/backoff.ts'
import { callConfigured } from '../../net/configured.ts'
import { Unreachable } from '../../net/outside.ts'
import { Busy, Lost } from '../provider.ts'
import { redact } from './inside.ts'

/** A request of the library. */
interface Asked {
  method: string
  uri: string
  username?: string
  password?: string
  headers?: Record<string, string>
  params?: object
  data?: object
}

interface Answered {
  statusCode: number
  body: string
  headers: Record<string, string | string[] | undefined>
}

/** The timeout of one API request in milliseconds. */
const timeout = 15_000

/** The largest response in bytes: a page of numbers. */
const largest = 4 * 1024 * 1024

/**
 * Sends the library's requests over our HTTP client: with a timeout, without redirects, and with the knowledge whether a request reached
 * Twilio.
 */
export class TwilioTransport {
  readonly #base: string
  readonly #clock: Clock
  readonly #signal: AbortSignal | undefined

  /** Requests in progress when the signal aborts are Lost. */
  constructor(base: string, clock: Clock, signal?: AbortSignal) {
    this.#base = base
    this.#clock = clock
    this.#signal = signal
  }

  /** Throws Busy when the request cannot have reached Twilio, Lost when it may have. */
  async request({ method, uri, username = '', password = '', headers = {}, params, data }: Asked): Promise<Answered> {
    const url = new URL(uri.replace(/^https:\/\/api\.twilio\.com(?=\/)/, this.#base))
    for (const [name, value] of formOf(params)) url.searchParams.append(name, value)
    const form = new URLSearchParams(formOf(data)).toString()
    const credentials = Buffer.from(`${username}:${password}`).toString('base64')
    const answer = await this.#ask(url, method, headers, credentials, form)
    const { status, headers: heads } = answer
    const text = redact(answer.text, [password, credentials])
    if (status === 429 || status === 503) {
      throw new Busy(`Twilio answered ${status}`, retryAfter([heads['retry-after']].flat()[0], this.#clock.now()))
    }
    // the other errors may come after the request was executed
    if (status >= 500) throw new Lost(`Twilio answered ${status}`)
    return { statusCode: status, body: text, headers: heads }
  }

  async #ask(
    url: URL,
    method: string,
    headers: Record<string, string>,
    credentials: string,
    form: string,
  ): Promise<{ status: number; headers: Answered['headers']; text: string }> {
    try {
      return await callConfigured(url, {
        method: method.toUpperCase() as 'GET' | 'POST' | 'DELETE',
        headers: [...Object.entries(headers), ['Authorization', `Basic ${credentials}`]].flat(),
        body: method === 'post' ? Buffer.from(form) : null,
        signal: AbortSignal.any([AbortSignal.timeout(timeout), ...(this.#signal ? [this.#signal] : [])]),
        limit: largest,
        alone: true,
      })
    } catch (error) {
      const message = error instanceof Error ? error.message : 'it failed'
      if (error instanceof Unreachable) throw new Busy(`Twilio cannot be reached: ${message}`)
      throw new Lost(`Twilio’s response was lost: ${message}`)
    }
  }
}

/** Encodes a form as Twilio expects it: a list is a repeated field. */
function formOf(values: object | undefined): [string, string][] {
  return Object.entries(values ?? {}).flatMap(([name, value]: [string, unknown]) =>
    [value].flat().flatMap((one): [string, string][] => (isPlain(one) ? [[name, String(one)]] : [])),
  )
}

function isPlain(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value)
}
