/** One message's share of a memory budget. `take` returns whether the budget allowed that many more octets. */
export interface MemoryShare {
  take(octets: number): boolean
  /** Releases all octets of this message. May be called again. */
  giveBack(): void
}

/** Limits the octets of messages held in memory over all connections. */
export class Budget {
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
      take: (octets) => {
        if (this.#used + octets > this.#limit()) return false
        this.#used += octets
        taken += octets
        return true
      },
      giveBack: () => {
        this.#used -= taken
        taken = 0
      },
    }
  }
}
