import { networkOf } from '../net/networks.ts'

/** Refusals of one kind from one network within a window, of which only the first were logged. */
interface Unlogged {
  /** Null for all networks beyond the number that is counted individually. */
  ip: string | null
  what: string | null
  more: number
}

/** Length of a window in milliseconds. */
const window = 60_000

/** Lines in a window of one kind from one network, lines in total, and the number of distinct pairs of network and kind. */
const maxAlike = 30
const maxLines = 1000
const maxCounts = 1000

/**
 * Limits how many refusals are logged. Of alike refusals (one kind, from one IPv4 address or IPv6 /64) the first thirty in a minute are logged;
 * the others are counted, and reported at the end of the minute.
 */
export class RepeatedRefusals {
  readonly #report: (unlogged: Unlogged) => void
  readonly #counts = new Map<string, { ip: string; what: string; occurrences: number; more: number }>()
  #lines = 0
  #others = 0
  #timer: NodeJS.Timeout | undefined

  constructor(report: (unlogged: Unlogged) => void) {
    this.#report = report
  }

  /** True if this refusal is to be logged; otherwise it is counted. `what` must have few distinct values. */
  admits(ip: string, what: string): boolean {
    this.#timer ??= setTimeout(() => this.flush(), window).unref()
    const key = `${networkOf(ip)} ${what}`
    const count = this.#counts.get(key) ?? { ip, what, occurrences: 0, more: 0 }
    if (count.occurrences === 0) {
      if (this.#counts.size >= maxCounts) {
        this.#others++
        return false
      }
      this.#counts.set(key, count)
    }
    count.occurrences++
    if (count.occurrences <= maxAlike && this.#lines < maxLines) {
      this.#lines++
      return true
    }
    count.more++
    return false
  }

  /** Reports what was not logged, and begins a new window. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { ip, what, more } of this.#counts.values()) if (more > 0) this.#report({ ip, what, more })
    if (this.#others > 0) this.#report({ ip: null, what: null, more: this.#others })
    this.#counts.clear()
    this.#lines = 0
    this.#others = 0
  }
}
