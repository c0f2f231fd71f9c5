import { performance } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FairQueue } from '../../core/work/fair-queue.ts'
import { Fault } from '../../core/fault.ts'
import { readingTurns } from '../../net/reading-turns.ts'
import type { CallAbort } from './call-abort.ts'

/** Milliseconds of work after which the event loop accepts new input. */
const slice = 20

/** Maximum turns of the event loop between two slices while input arrives: libuv accepts one connection of a port in each. */
const maxTurns = 200

/** Maximum milliseconds of these turns together. */
const maxAcceptTime = 50

/** Milliseconds of main-thread work a second, of calls that waited, after which an account goes behind those that used less. */
const share = 100

/** Maximum waiting calls of one account. */
const maxWaiting = 1000

interface Waiting {
  account: string
  begin: () => void
}

/**
 * Schedules calls whose bodies have arrived, before they are parsed and handled. Work on the main thread is done in slices. When a slice is used
 * up, new calls are queued first, and then accounts take turns. A call that waits for something else (a message, the disk, another server) does
 * not count.
 */
export class CallTurns {
  readonly #waiting = new FairQueue<Waiting>()
  /** Milliseconds of the calls of each account that waited, since `#counted`. */
  readonly #spent = new Map<string, number>()
  #counted = 0
  /** Milliseconds of this slice used in previous turns of the event loop. */
  #used = 0
  /** The start of the first call of this turn of the event loop. */
  #began: number | undefined
  #serving = false

  /** Waiting calls. */
  get size(): number {
    return this.#waiting.size
  }

  /**
   * Undefined when the call may begin at once, else resolves when it may; `account` is its network when it has none. Rejects when the call is
   * aborted. Throws Fault rate_limited, code `too_many_waiting`.
   */
  take(account: string, abort: CallAbort): Promise<void> | undefined {
    if (this.#waiting.size === 0 && this.#hasTime()) return undefined
    if (this.#waiting.sizeOf(account) >= maxWaiting) {
      throw new Fault('rate_limited', `${maxWaiting} calls of this account are already waiting. Retry when some have finished.`, {
        code: 'too_many_waiting',
        retryAfter: 1,
      })
    }
    return this.again(account, abort)
  }

  /**
   * Resolves when a call that waited for something else may go on, never at once: many may be woken in the same turn of the event loop, and each
   * ends its work before the next goes on. Rejects when the call is aborted.
   */
  again(account: string, abort: CallAbort): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = { account, begin: resolve }
      this.#waiting.push(account, waiting)
      abort.onCut(() => {
        if (this.#waiting.remove(account, waiting)) reject(new Error('The call was aborted while it waited'))
      })
      if (!this.#serving) void this.#serve()
    })
  }

  #hasTime(): boolean {
    const now = performance.now()
    if (this.#began === undefined) {
      this.#began = now
      setImmediate(this.#endTurn)
    }
    return this.#used + now - this.#began < slice
  }

  readonly #endTurn = (): void => {
    this.#used += performance.now() - this.#began!
    this.#began = undefined
  }

  async #serve(): Promise<void> {
    this.#serving = true
    while (this.#waiting.size > 0) {
      await acceptInput()
      const now = performance.now()
      if (now - this.#counted > 1000) {
        this.#spent.clear()
        this.#counted = now
      }
      while (this.#waiting.size > 0 && performance.now() - now < slice) await this.#beginNext()
      this.#used = performance.now() - now
    }
    this.#serving = false
  }

  async #beginNext(): Promise<void> {
    const { account, begin } = (this.#waiting.shift((one) => this.#spentBy(one) < share) ?? this.#waiting.shift())!
    const began = performance.now()
    begin()
    // runs once the call waits for something
    await new Promise<void>((resolve) => process.nextTick(resolve))
    this.#spent.set(account, this.#spentBy(account) + performance.now() - began)
  }

  #spentBy(account: string): number {
    return this.#spent.get(account) ?? 0
  }
}

/** Resolves when no more input arrives or is to be read, or a limit is reached. */
async function acceptInput(): Promise<void> {
  const end = performance.now() + maxAcceptTime
  let events = -1
  for (let turns = 0; turns < maxTurns && performance.now() < end; turns += 1) {
    if (events === eventsSoFar() && readingTurns.size === 0) return
    events = eventsSoFar()
    await nextTurn()
  }
}

function eventsSoFar(): number {
  return performance.nodeTiming.uvMetricsInfo.events
}
