import { ConnectionError, isPassing, PillarboxError } from './errors.ts'
import { backoff, pause } from './request.ts'
import type { Event, EventType, RealtimeToken, RealtimeTokenWish } from './types.ts'

/** Which events, and from where. */
export interface EventOptions {
  /** Of this identity only. */
  identity?: string | { id: string } | undefined
  /** All that the key may read by default. */
  channel?: 'agent_events' | 'email_messages' | 'sms_messages' | undefined
  /** Of these types only. */
  types?: readonly EventType[] | undefined
  /** The `id` of the last event that was handled, or a time: what came after it comes first. By default only new events. */
  since?: string | undefined
  /** Ends the events, with the reason of the signal. */
  signal?: AbortSignal | undefined
  /** Called when a connection ended, with why, before the next one is made. */
  onReconnect?: ((error: Error) => void) | undefined
}

interface EventSource {
  token: (wish: RealtimeTokenWish, signal: AbortSignal) => Promise<RealtimeToken>
  WebSocket: typeof WebSocket
}

/** Events that wait to be taken; above it the connection is closed until they are fewer: the log of the box keeps the rest. */
const mostWaiting = 1000

/** Seconds without any frame after which the box is asked for one, and after as many more the connection is given up. */
const silence = 25

/** Closings after which the same subscription would be refused again. */
const finalClosings = [4400, 4403, 4410]

/** Errors of a subscription that do not come again. */
const passing = ['token_expired', 'too_many_frames', 'internal_error']

interface Frame {
  type: string
  event: Event
  since?: string | null
  code: string
  message: string
  param?: string | undefined
}

/**
 * Events as they happen, in the order of the log, each once. A connection that ends is made again from the last event that came, so that none
 * is lost. Ends by `break`, `close()` or the signal; throws what another attempt cannot mend, such as `since_expired`.
 */
export class EventStream implements AsyncIterable<Event> {
  /** Resolves when the box will send every event from now on. */
  readonly ready: Promise<void>
  readonly #source: EventSource
  readonly #options: EventOptions
  readonly #end = new AbortController()
  readonly #waiting: Event[] = []
  #since: string | undefined
  #attempt = 0
  #lived = false
  #subscribed!: () => void
  /** Called when events came or were taken, and at the end. */
  #changes: (() => void)[] = []

  constructor(source: EventSource, options: EventOptions) {
    this.#source = source
    this.#options = options
    this.#since = options.since
    const { signal } = this.#end
    this.ready = new Promise((resolve, reject) => {
      this.#subscribed = resolve
      signal.addEventListener('abort', () => {
        reject(signal.reason as Error)
        this.#changed()
      })
    })
    // who does not look at it is told by the events
    this.ready.catch(() => undefined)
    const { signal: wanted } = options
    wanted?.addEventListener('abort', () => this.#end.abort(wanted.reason), { signal })
    if (wanted?.aborted) this.#end.abort(wanted.reason)
    this.#run().catch((error: unknown) => this.#end.abort(error))
  }

  /** Ends the events. */
  close(): void {
    this.#end.abort(closed)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void> {
    const { signal } = this.#end
    try {
      for (;;) {
        for (let event; (event = this.#waiting.shift());) {
          if (signal.reason === closed) return
          this.#changed()
          yield event
        }
        if (signal.reason === closed) return
        if (signal.aborted) throw signal.reason
        await this.#change()
      }
    } finally {
      this.close()
    }
  }

  #changed(): void {
    for (const tell of this.#changes.splice(0)) tell()
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#changes.push(resolve))
  }

  async #run(): Promise<void> {
    const { signal } = this.#end
    const { identity, channel = 'agent_events', onReconnect } = this.#options
    const identity_id = typeof identity === 'object' ? identity.id : identity
    while (!signal.aborted) {
      try {
        const { url, token } = await this.#source.token({ channels: [channel], identity_id }, signal)
        await this.#follow(url, token, JSON.stringify({ type: 'subscribe', channel, identity_id, since: this.#since }))
        while (this.#waiting.length > mostWaiting / 2 && !signal.aborted) await this.#change()
      } catch (error) {
        const mended = isPassing(error) || passing.includes((error as PillarboxError).code)
        if (signal.aborted || !mended || (!this.#lived && this.#attempt > 2)) throw error
        onReconnect?.(error as Error)
        await pause(backoff(this.#attempt, 30), signal)
        this.#attempt += 1
      }
    }
  }

  /** One connection. Resolves when too many events wait; rejects when it ended. */
  #follow(url: string, token: string, subscribe: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = new this.#source.WebSocket(url, ['pillarbox.v1', token])
      const { signal } = this.#end
      let heard = Date.now()
      const timer = setInterval(() => {
        const quiet = (Date.now() - heard) / 1000
        if (quiet >= 2 * silence) leave(new ConnectionError(`Nothing was heard from ${url} for ${quiet} s.`, 'silence'))
        else if (quiet >= silence && socket.readyState === 1) socket.send('{"type":"ping"}')
      }, 5000)
      let left = false
      const leave = (error?: Error): void => {
        left = true
        clearInterval(timer)
        signal.removeEventListener('abort', stop)
        socket.close()
        if (error) reject(error)
        else resolve()
      }
      const stop = (): void => leave()
      signal.addEventListener('abort', stop)
      socket.addEventListener('open', () => socket.send(subscribe))
      socket.addEventListener('message', ({ data }) => {
        // what comes after it was left comes again on the next connection
        if (left) return
        heard = Date.now()
        try {
          const frame = JSON.parse(String(data)) as Frame
          if (frame.type === 'subscribed') this.#begun(frame.since)
          if (frame.type === 'event') this.#take(frame.event)
          if (frame.type === 'error') leave(new PillarboxError(frame.message, frame.code, { param: frame.param }))
        } catch {
          // what a listener throws ends the program
          leave(new PillarboxError(`${url} sent a malformed frame.`, 'malformed_frame'))
        }
        if (this.#waiting.length >= mostWaiting) leave()
      })
      socket.addEventListener('close', ({ code, reason }) => {
        const Class = finalClosings.includes(code) ? PillarboxError : ConnectionError
        leave(new Class(`The connection to ${url} ended: ${code} ${reason}`, `socket_${code}`))
      })
      // the close that follows says more
      socket.addEventListener('error', () => undefined)
    })
  }

  #begun(since: string | null | undefined): void {
    // of a log without any event everything will be new
    this.#since ??= since ?? '1970-01-01T00:00:00Z'
    this.#attempt = 0
    this.#lived = true
    this.#subscribed()
  }

  #take(event: Event): void {
    this.#since = event.id
    const { types } = this.#options
    if (types && !types.includes(event.type)) return
    this.#waiting.push(event)
    this.#changed()
  }
}

/** The reason of an end that was asked for. */
const closed = {}
