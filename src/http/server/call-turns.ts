import { performance } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FairQueue } from '../../core/fair-queue.ts'
import { Fault } from '../../core/fault.ts'
import type { CallAbort } from './call-abort.ts'

/** Milliseconds of work after which the event loop first takes in what has come meanwhile. */
const slice = 20

/** Turns of the event loop between two slices, while each brings something: libuv accepts one connection of a port in each. */
const maxTurns = 200

/** Milliseconds that these turns may take together: other work may keep each of them busy for long. */
const longestIntake = 50

/** Milliseconds of work on the main thread in a second, of calls that had to wait, after which an account goes behind those that took less. */
const share = 100

/** Calls of one account that may wait. */
const longest = 1000

interface Waiting {
  account: string
  begin: () => void
}

/**
 * Calls whose bodies have come, before they are parsed and handled. What of them keeps the main thread busy is done in slices. When one is used up,
 * calls wait until all have joined their lines, and then accounts take turns. A call that waits for something else (a message, the disk, another
 * server) is in nobody's way.
 */
export class CallTurns {
  readonly #waiting = new FairQueue<Waiting>()
  /** Milliseconds that the calls of each account took, of those that had to wait, since `#counted`. */
  readonly #spent = new Map<string, number>()
  #counted = 0
  /** Milliseconds of this slice that former turns of the event loop used. */
  #used = 0
  /** When the first call of this turn of the event loop came. */
  #began: number | undefined
  #serving = false

  /** Calls that wait. */
  get size(): number {
    return this.#waiting.size
  }

  /**
   * Undefined when the call may begin at once, else resolves when it may; `account` is its network when it has none. Rejects when the call is cut
   * off. Throws Fault rate_limited, code `too_many_waiting`.
   */
  take(account: string, hand: CallAbort): Promise<void> | undefined {
    if (this.#waiting.size === 0 && this.#hasTime()) return undefined
    if (this.#waiting.sizeOf(account) >= longest) {
      throw new Fault(
        'rate_limited',
        `${longest} calls of yours wait already. Send this one again when some have been answered.`,
        {
          code: 'too_many_waiting',
          retryAfter: 1,
        },
      )
    }
    return new Promise((resolve, reject) => {
      const waiting = { account, begin: resolve }
      this.#waiting.push(account, waiting)
      hand.onCut(() => {
        if (this.#waiting.remove(account, waiting)) reject(new Error('The call was cut off before its turn'))
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
      await takeIn()
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
    // runs once the call has done all that it can without waiting for something
    await new Promise<void>((resolve) => process.nextTick(resolve))
    this.#spent.set(account, this.#spentBy(account) + performance.now() - began)
  }

  #spentBy(account: string): number {
    return this.#spent.get(account) ?? 0
  }
}

/** Resolves when nothing more has come, or so much that it is time to go on. */
async function takeIn(): Promise<void> {
  const end = performance.now() + longestIntake
  for (let turns = 0, events = -1; turns < maxTurns && events !== eventsSoFar() && performance.now() < end; turns += 1) {
    events = eventsSoFar()
    await nextTurn()
  }
}

function eventsSoFar(): number {
  return performance.nodeTiming.uvMetricsInfo.events
}
