/** One message's part of a budget: `take` answers whether there was room for so many octets more. */
export interface MemoryShare {
  take(octets: number): boolean
  /** Everything this message has taken, once it is no longer held; may be called again. */
  giveBack(): void
}

/** Octets of messages that are held in memory at once, over all connections. */
export class Budget {
  readonly #limit: () => number
  #used = 0

  constructor(limit: () => number) {
    this.#limit = limit
  }

  get used(): number {
    return this.#used
  }

  /** Octets that may be held at most. */
  get limit(): number {
    return this.#limit()
  }

  /** For one message. */
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
