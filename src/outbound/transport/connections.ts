import type { SmtpClientSession } from './session.ts'

/** Connections in use at once to one destination; a relay has all lanes, and would have as many as there are. */
const maxBusy = 20

/** Messages over one connection, idle ones in all, and milliseconds that one may be idle. */
const maxMessages = 100
const maxIdle = 100
const idleTime = 10_000

/** Connections that wait for the next message to the same destination, spoken to in the same manner. */
export class Connections {
  readonly #idle = new Map<string, { session: SmtpClientSession; timer: NodeJS.Timeout }[]>()
  readonly #busy = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()

  get idle(): number {
    return sum([...this.#idle.values()].map(({ length }) => length))
  }

  get busy(): number {
    return sum(this.#busy.values())
  }

  /** Runs a piece of work once there is room for another connection to the destination. */
  async withSlot<Result>(key: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    await this.#enter(key, signal)
    try {
      return await work()
    } finally {
      this.#leave(key)
    }
  }

  /** One that is still there; undefined when there is none. */
  async take(key: string, signal: AbortSignal): Promise<SmtpClientSession | undefined> {
    for (;;) {
      const entry = this.#idle.get(key)?.at(-1)
      if (!entry) return undefined
      this.#forget(key, entry.session)
      if (await entry.session.ready(signal)) return entry.session
      signal.throwIfAborted()
    }
  }

  /** Keeps one for the next message, or says goodbye. */
  keep(key: string, session: SmtpClientSession): void {
    if (!session.alive) return
    if (session.messages >= maxMessages || this.idle >= maxIdle) return session.leave()
    const timer = setTimeout(() => {
      this.#forget(key, session)
      session.leave()
    }, idleTime).unref()
    const list = this.#idle.get(key) ?? []
    list.push({ session, timer })
    this.#idle.set(key, list)
    session.onEnd = () => this.#forget(key, session)
  }

  /** Lets go of the idle ones to a destination, or of all. */
  drop(key?: string): void {
    for (const [one, list] of this.#idle) {
      if (key !== undefined && one !== key) continue
      this.#idle.delete(one)
      for (const { session, timer } of list) {
        clearTimeout(timer)
        session.close()
      }
    }
  }

  #forget(key: string, session: SmtpClientSession): void {
    const list = this.#idle.get(key) ?? []
    const entry = list.find((one) => one.session === session)
    if (!entry) return
    clearTimeout(entry.timer)
    list.splice(list.indexOf(entry), 1)
    if (list.length === 0) this.#idle.delete(key)
  }

  async #enter(key: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const busy = this.#busy.get(key) ?? 0
    if (busy < maxBusy) return void this.#busy.set(key, busy + 1)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const queue = this.#waiting.get(key) ?? []
    queue.push(resolve)
    this.#waiting.set(key, queue)
    const abort = (): void => {
      const place = queue.indexOf(resolve)
      // whoever was let in just now leaves in the usual way
      if (place < 0) return
      queue.splice(place, 1)
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', abort)
    await promise.finally(() => signal.removeEventListener('abort', abort))
  }

  /** The place goes to who waits longest. */
  #leave(key: string): void {
    const queue = this.#waiting.get(key)
    const next = queue?.shift()
    if (queue?.length === 0) this.#waiting.delete(key)
    if (next) return next()
    const busy = this.#busy.get(key)! - 1
    if (busy === 0) this.#busy.delete(key)
    else this.#busy.set(key, busy)
  }
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
