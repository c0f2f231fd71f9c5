import { neighbourhood } from '../net/networks.ts'

/** Refusals of one kind from one network within a window, of which only the first were logged. */
export interface Unlogged {
  /** Null for all networks that are beyond what is counted one by one. */
  ip: string | null
  what: string | null
  more: number
}

/** How long a window is, in milliseconds. */
const span = 60_000

/** Lines in a window: of one kind from one network, and in all; and networks and kinds that are told apart. */
const maxAlike = 30
const maxLines = 1000
const maxCounts = 1000

/**
 * Keeps strangers from filling the log: of refusals that are alike (one kind, from one IPv4 address or IPv6 /64) the first thirty in a minute
 * are lines, the others are counted, and told once the minute is over.
 */
export class RepeatedRefusals {
  readonly #tell: (unlogged: Unlogged) => void
  readonly #counts = new Map<string, { ip: string; what: string; seen: number; more: number }>()
  #lines = 0
  #others = 0
  #timer: NodeJS.Timeout | undefined

  constructor(tell: (unlogged: Unlogged) => void) {
    this.#tell = tell
  }

  /** Whether this one is a line of the log; it is counted otherwise. `what` is of few values. */
  admits(ip: string, what: string): boolean {
    this.#timer ??= setTimeout(() => this.flush(), span).unref()
    const key = `${neighbourhood(ip)} ${what}`
    const count = this.#counts.get(key) ?? { ip, what, seen: 0, more: 0 }
    if (count.seen === 0) {
      if (this.#counts.size >= maxCounts) {
        this.#others++
        return false
      }
      this.#counts.set(key, count)
    }
    count.seen++
    if (count.seen <= maxAlike && this.#lines < maxLines) {
      this.#lines++
      return true
    }
    count.more++
    return false
  }

  /** Tells what was not logged, and begins a new window. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { ip, what, more } of this.#counts.values()) if (more > 0) this.#tell({ ip, what, more })
    if (this.#others > 0) this.#tell({ ip: null, what: null, more: this.#others })
    this.#counts.clear()
    this.#lines = 0
    this.#others = 0
  }
}
