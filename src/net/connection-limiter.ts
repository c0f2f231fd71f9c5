import { type Networks, networkShares, networksOf } from './networks.ts'

export interface ConnectionLimits {
  /** Maximum number of open connections. */
  max_connections: number
  /** Of one IPv4 address or IPv6 /64; four times as many of a /56, sixteen times of a /48. */
  max_connections_per_address: number
  /** Proxies, which speak for many: their connections are not counted. */
  uncounted?: Networks
}

/** Counts the open connections, in total and by network, so that no client can take all of them, and owning many networks gives little more. */
export class ConnectionLimiter {
  readonly #limits: () => ConnectionLimits
  readonly #from = new Map<string, number>()
  #open = 0

  /** Changed limits apply to new connections; open ones stay. */
  constructor(limits: () => ConnectionLimits) {
    this.#limits = limits
  }

  get open(): number {
    return this.#open
  }

  /** True for a proxy. */
  isUncounted(address: string): boolean {
    return this.#limits().uncounted?.has(address) ?? false
  }

  /**
   * Counts a connection, and returns what to call once when it has ended; or why it is refused: the server (`server_full`) or one of the client's
   * networks (`network_full`) is at its limit.
   */
  admit(address: string): (() => void) | 'server_full' | 'network_full' {
    if (this.isUncounted(address)) return () => undefined
    const { max_connections, max_connections_per_address: max } = this.#limits()
    if (this.#open >= max_connections) return 'server_full'
    const networks = networksOf(address)
    if (networks.some((network, index) => this.#of(network) >= max * networkShares[index]!)) return 'network_full'
    this.#open++
    for (const network of networks) this.#from.set(network, this.#of(network) + 1)
    return () => this.#release(networks)
  }

  /** Connections of the network of an address that has most for its width. */
  loadOf(address: string): number {
    return Math.max(...networksOf(address).map((network, index) => this.#of(network) / networkShares[index]!))
  }

  #release(networks: string[]): void {
    this.#open--
    for (const network of networks) {
      const left = this.#of(network) - 1
      if (left > 0) this.#from.set(network, left)
      else this.#from.delete(network)
    }
  }

  #of(network: string): number {
    return this.#from.get(network) ?? 0
  }
}
