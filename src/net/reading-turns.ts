import { lruMap } from '../core/memory.ts'
import { FairQueue } from '../core/work/fair-queue.ts'

/**
 * Milliseconds in each iteration of the event loop for what all clients have sent; other work is done between. In each iteration one connection is
 * accepted: where a hundred wait for that, the next honest one does so for a hundred times as long.
 */
const budget = 2

/** The queue of connections in their handshake, which come first. */
export const handshake = 'handshake'

/**
 * Reading what clients have sent: TLS records, HTTP in the clear, and messages by SMTP. The network that used the least time within the last second comes
 * first: the slices of one may take a hundred times as long as those of another. What the budget of an iteration does not suffice for is done in the next.
 */
class ReadingTurns {
  readonly #waiting = new FairQueue<{ network: string; read: () => void }>()
  /** Milliseconds by network, since `#counted`. */
  readonly #used = lruMap<number>(10_000)
  #counted = 0
  #spent = 0
  #scheduled = false
  #isReading = false

  /** True if this network used no time lately. */
  isIdle(network: string): boolean {
    return this.#usedBy(network) === 0
  }

  enter(queue: string, network: string, read: () => void): void {
    this.#waiting.push(queue, { network, read })
    this.#run()
  }

  #run(): void {
    // what is read may have more to be read: it waits as all else does
    if (this.#isReading) return
    this.#isReading = true
    while (this.#spent < budget) {
      const next = this.#next()
      if (!next) break
      const begun = performance.now()
      next.read()
      const took = performance.now() - begun
      this.#spent += took
      this.#count(next.network, took, begun)
    }
    this.#isReading = false
    if (this.#spent === 0 || this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#spent = 0
      this.#run()
    })
  }

  #next(): { network: string; read: () => void } | undefined {
    if (this.#waiting.size === 0) return undefined
    let first = ''
    let least = Infinity
    this.#waiting.peek((queue) => {
      const used = queue === handshake ? -1 : this.#usedBy(queue)
      if (used < least) [first, least] = [queue, used]
      // nothing is less
      return least <= 0
    })
    return this.#waiting.shift((queue) => queue === first)
  }

  #count(network: string, took: number, now: number): void {
    if (now - this.#counted > 1000) {
      this.#used.clear()
      this.#counted = now
    }
    this.#used.set(network, this.#usedBy(network) + took)
  }

  #usedBy(network: string): number {
    return this.#used.peek(network) ?? 0
  }
}

/** Those of this process. */
export const readingTurns = new ReadingTurns()
