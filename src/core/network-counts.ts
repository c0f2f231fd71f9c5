import { neighbourhoods, networkShares } from './networks.ts'

/** What is open at once, by the networks of the addresses it came from: who has many networks has no more for that. */
export class NetworkCounts {
  readonly #open = new Map<string, number>()

  /** Counts one in, unless a network of the address has all it may: `most` of an IPv4 address or IPv6 /64, 4 times as many of a /56, 16 times of a /48. Answers whether. */
  enter(address: string, most: number): boolean {
    const networks = neighbourhoods(address)
    if (networks.some((network, index) => this.#of(network) >= most * networkShares[index]!)) return false
    for (const network of networks) this.#open.set(network, this.#of(network) + 1)
    return true
  }

  /** Counts one out that was counted in. */
  leave(address: string): void {
    for (const network of neighbourhoods(address)) {
      const left = this.#of(network) - 1
      if (left > 0) this.#open.set(network, left)
      else this.#open.delete(network)
    }
  }

  #of(network: string): number {
    return this.#open.get(network) ?? 0
  }
}
