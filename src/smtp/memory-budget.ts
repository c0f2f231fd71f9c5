/** One message's share of a memory budget. `take` returns whether the budget allowed that many more octets. */
export interface MemoryShare {
  reserve(octets: number): boolean
  /** Releases all octets of this message. May be called again. */
  release(): void
}

/** Limits the octets of messages held in memory over all connections. */
export class MemoryBudget {
  readonly #limit: () => number
  #used = 0

  constructor(limit: () => number) {
    this.#limit = limit
  }

  get used(): number {
    return this.#used
  }

  /** The limit in octets. */
  get limit(): number {
    return this.#limit()
  }

  /** A share for one message. */
  share(): MemoryShare {
    let taken = 0
    return {
      reserve: (octets) => {
        if (this.#used + octets > this.#limit()) return false
        this.#used += octets
        taken += octets
        return true
      },
      release: () => {
        this.#used -= taken
        taken = 0
      },
    }
  }
}
