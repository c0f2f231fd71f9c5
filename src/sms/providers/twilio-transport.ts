import type { Clock } from '../../core/clock.ts'
import { retryAfter } from '../../queue/backoff.ts'
import { callConfigured, Unreachable } from '../../net/outside.ts'
import { Busy, Lost } from '../provider.ts'
import { redact } from './inside.ts'

/** One request of the library's. */
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

/** Longest time in milliseconds for one answer of the API. */
const timeout = 15_000

/** Octets of the largest answer that is read: a page of numbers. */
const largest = 4 * 1024 * 1024

/** The library's requests over our own HTTP: every one has an end, no redirect is followed, and it is known whether one was heard. */
export class TwilioTransport {
  readonly #base: string
  readonly #clock: Clock
  readonly #signal: AbortSignal | undefined

  /** What is under way when the signal aborts is lost. */
  constructor(base: string, clock: Clock, signal?: AbortSignal) {
    this.#base = base
    this.#clock = clock
    this.#signal = signal
  }

  /** Throws Busy for what Twilio cannot have heard, Lost for what it may have. */
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
    // the others may have done what was asked
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
      throw new Lost(`Twilio’s answer was lost: ${message}`)
    }
  }
}

/** As Twilio takes forms: a list is a field that comes several times. */
function formOf(values: object | undefined): [string, string][] {
  return Object.entries(values ?? {}).flatMap(([name, value]: [string, unknown]) =>
    [value].flat().flatMap((one): [string, string][] => (isPlain(one) ? [[name, String(one)]] : [])),
  )
}

function isPlain(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value)
}
