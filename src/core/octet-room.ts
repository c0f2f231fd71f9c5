/** Memory that is shared by accounts, counted in octets, with a share that no one of them goes beyond. */
export class OctetRoom {
  readonly #most: { all: number; one: number }
  readonly #held = new Map<string, number>()
  #all = 0

  constructor(most: { all: number; one: number }) {
    this.#most = most
  }

  /** Answers whether there was room; without it nothing is taken. */
  take(holder: string, octets: number): boolean {
    const held = (this.#held.get(holder) ?? 0) + octets
    if (held > this.#most.one || this.#all + octets > this.#most.all) return false
    this.#held.set(holder, held)
    this.#all += octets
    return true
  }

  give(holder: string, octets: number): void {
    this.#all -= octets
    const held = (this.#held.get(holder) ?? 0) - octets
    if (held > 0) this.#held.set(holder, held)
    else this.#held.delete(holder)
  }
}
