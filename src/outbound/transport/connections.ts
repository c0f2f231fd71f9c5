import type { SmtpClientSession } from './session.ts'

/** Connections in use at once to one destination. It limits a relay, which serves all lanes. */
const maxBusy = 20

/** Maximum messages of one connection, idle connections in all, and milliseconds that one may be idle. */
const maxMessages = 100
const maxIdle = 100
const idleTime = 10_000

/** A pool of connections by destination and session options. */
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

  /** Runs the work once another connection to the destination is allowed. */
  async withSlot<Result>(key: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    await this.#acquire(key, signal)
    try {
      return await work()
    } finally {
      this.#release(key)
    }
  }

  /** Takes an idle connection that is still alive; undefined when there is none. */
  async take(key: string, signal: AbortSignal): Promise<SmtpClientSession | undefined> {
    for (;;) {
      const entry = this.#idle.get(key)?.at(-1)
      if (!entry) return undefined
      this.#forget(key, entry.session)
      if (await entry.session.ready(signal)) return entry.session
      signal.throwIfAborted()
    }
  }

  /** Puts a connection back into the pool, or quits it. */
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

  /** Closes the idle connections to a destination, or all. */
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

  async #acquire(key: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const busy = this.#busy.get(key) ?? 0
    if (busy < maxBusy) return void this.#busy.set(key, busy + 1)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const queue = this.#waiting.get(key) ?? []
    queue.push(resolve)
    this.#waiting.set(key, queue)
    const abort = (): void => {
      const index = queue.indexOf(resolve)
      // one that was admitted just now is released as usual
      if (index < 0) return
      queue.splice(index, 1)
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', abort)
    await promise.finally(() => signal.removeEventListener('abort', abort))
  }

  /** Gives the slot to the longest waiting one. */
  #release(key: string): void {
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
