import { isPassing, TimeoutError } from './errors.ts'
import type { Methods } from './methods.ts'
import { pause } from './request.ts'
import type { Message, WaitAnswer } from './types.ts'

/** Which message is waited for, and how long. */
export interface WaitOptions {
  /** Part of the sender’s address, name or number. */
  from?: string | undefined
  /** Part of the subject. */
  subject?: string | undefined
  channel?: 'email' | 'sms' | 'any' | undefined
  /** Seconds; 60 by default. */
  timeout?: number | undefined
  /** An event id or a time; by default two minutes ago, without what a wait of this key returned already. */
  since?: string | undefined
  /** Spam counts too. */
  spam?: boolean | undefined
  signal?: AbortSignal | undefined
}

/** A message with the codes and links in it. `since` continues after it. */
export interface Arrived extends WaitAnswer {
  item: Message
}

/** Proxies often cut a call off after a minute: a longer wait is several calls. In seconds. */
const longestCall = 50

/** How far back a wait without `since` looks, in milliseconds. */
const lookBack = 120_000

/** Waits for messages by `GET …/wait`. */
export class Waits {
  readonly #identities: Pick<Methods['identities'], 'wait' | 'get'>
  readonly #clock: { readonly boxTime: number | undefined }
  /** The last messages that were returned. */
  readonly #returned = new Set<string>()

  constructor(identities: Pick<Methods['identities'], 'wait' | 'get'>, clock: { readonly boxTime: number | undefined }) {
    this.#identities = identities
    this.#clock = clock
  }

  /** The first message that fits. Throws TimeoutError, code `no_message`. */
  async next(identity: string | { id: string }, options: WaitOptions, fits: (answer: Arrived) => boolean): Promise<Arrived> {
    const { from, subject, channel, timeout = 60, spam, signal } = options
    const id = typeof identity === 'string' ? identity : identity.id
    const end = Date.now() + timeout * 1000
    const begun = performance.now()
    let { since } = options
    let lost = false
    let again = false
    for (;;) {
      try {
        // the box may have answered, and returns that message again only if it is asked from before it
        if (lost && since === undefined) {
          const time = await this.#boxTime(id, signal)
          since = new Date(time - (performance.now() - begun) - lookBack).toISOString()
          again = true
        }
        const left = end - Date.now()
        const seconds = Math.max(0, Math.min(longestCall, Math.ceil(left / 1000)))
        const query = { from, subject_contains: subject, channel, spam, since, timeout: seconds }
        const answer = (await this.#identities.wait(id, query, { signal, timeout: seconds + 15, retries: 0 })) as Arrived
        if (answer.item && !(again && this.#returned.has(answer.item.id)) && fits(answer)) return this.#give(answer)
        since = answer.since ?? since
        if (answer.timed_out && left <= seconds * 1000) break
      } catch (error) {
        if (!isPassing(error) || Date.now() >= end) throw error
        lost = true
        await pause(Math.max(error.retry_after ?? 0, 1), signal)
      }
    }
    const what = `${from === undefined ? '' : ` from ${from}`}${subject === undefined ? '' : ` about ${subject}`}`
    throw new TimeoutError(`No message${what} arrived within ${timeout} s.`, 'no_message')
  }

  /** Any answer tells it; without one that is known yet, the box is asked. Throws what may pass. */
  async #boxTime(id: string, signal: AbortSignal | undefined): Promise<number> {
    if (this.#clock.boxTime === undefined) {
      try {
        await this.#identities.get(id, { signal, timeout: 15, retries: 0 })
      } catch (error) {
        if (signal?.aborted || (isPassing(error) && this.#clock.boxTime === undefined)) throw error
      }
    }
    // a page of another site may not be allowed to read it
    return this.#clock.boxTime ?? Date.now()
  }

  #give(answer: Arrived): Arrived {
    if (this.#returned.size > 1000) this.#returned.clear()
    this.#returned.add(answer.item.id)
    return answer
  }
}
