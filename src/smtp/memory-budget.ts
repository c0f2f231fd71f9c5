import { ConnectionLimiter, type ConnectionLimits } from '../net/connection-limiter.ts'
import { networkShares, networksOf } from '../net/networks.ts'

/** The largest message, in bytes, that counts as small: it has a place of its own, however much larger ones hold. */
const smallMessage = 65_536

/** One message's share of a memory budget. */
export interface MemoryShare {
  /** Called when the bytes must be released for another sender. It must call `release`. */
  onRevoked: () => void
  /** Returns whether the budget allows that many more bytes. */
  reserve(octets: number): boolean
  /** From now on the bytes are not revoked: the message was received whole. */
  keep(): void
  /** Releases all bytes of this message. May be called again. */
  release(): void
}

/** The bytes of one message. */
interface Holding {
  networks: string[]
  /** Gives back the place of a small message; null without one: the bytes count in the limit. */
  leave: (() => void) | null
  octets: number
  share: MemoryShare
}

/**
 * Limits the bytes of messages held in memory over all connections. There are as many places for small messages as there may be connections, of
 * all senders and of each. All others share one limit: one sender may use all of it, until another that holds less needs some.
 */
export class MemoryBudget {
  readonly #limit: () => number
  readonly #places: ConnectionLimiter
  /** Bytes of each network that count in the limit. */
  readonly #of = new Map<string, number>()
  readonly #revocable = new Set<Holding>()
  #counted = 0
  #used = 0

  /** `limit` is in bytes. */
  constructor(limit: () => number, connections: () => ConnectionLimits) {
    this.#limit = limit
    this.#places = new ConnectionLimiter(connections)
  }

  /** Bytes of all messages. */
  get used(): number {
    return this.#used
  }

  /** The limit in bytes of the messages that are not small. */
  get limit(): number {
    return this.#limit()
  }

  /** A share for one message of this sender: an address, which is counted by its networks, or the name of an account. */
  share(sender: string): MemoryShare {
    const share: MemoryShare = {
      onRevoked: () => undefined,
      reserve: (octets) => this.#reserve(holding, octets),
      keep: () => this.#revocable.delete(holding),
      release: () => this.#release(holding),
    }
    const place = this.#places.admit(sender)
    const holding: Holding = { networks: networksOf(sender), leave: typeof place === 'string' ? null : place, octets: 0, share }
    return share
  }

  #reserve(holding: Holding, octets: number): boolean {
    const size = holding.octets + octets
    if (!holding.leave || size > smallMessage) {
      // one that is no longer small counts from its first byte
      const more = holding.leave ? size : octets
      if (!this.#makeRoom(holding.networks, more)) return false
      this.#leave(holding)
      this.#count(holding.networks, more)
      this.#revocable.add(holding)
    }
    holding.octets = size
    this.#used += octets
    return true
  }

  /** Revokes messages until there is room for that many bytes; returns false if no sender holds more than this one would. */
  #makeRoom(networks: string[], octets: number): boolean {
    while (this.#counted + octets > this.#limit()) {
      const largest = this.#largestAbove(this.#weight(networks, octets))
      if (!largest) return false
      largest.share.onRevoked()
    }
    return true
  }

  /** The largest revocable message of the sender that holds most, and more than this weight. */
  #largestAbove(weight: number): Holding | null {
    let largest: Holding | null = null
    let most = weight
    for (const holding of this.#revocable) {
      const held = this.#weight(holding.networks)
      if (held < most || (held === most && holding.octets <= (largest?.octets ?? Infinity))) continue
      largest = holding
      most = held
    }
    return largest
  }

  /** Bytes that a sender holds, by that of its networks with the most for its share. */
  #weight(networks: string[], more = 0): number {
    return Math.max(...networks.map((network, index) => ((this.#of.get(network) ?? 0) + more) / networkShares[index]!))
  }

  #count(networks: string[], more: number): void {
    this.#counted += more
    for (const network of networks) {
      const octets = (this.#of.get(network) ?? 0) + more
      if (octets > 0) this.#of.set(network, octets)
      else this.#of.delete(network)
    }
  }

  #release(holding: Holding): void {
    this.#used -= holding.octets
    if (holding.leave) this.#leave(holding)
    else this.#count(holding.networks, -holding.octets)
    this.#revocable.delete(holding)
    holding.octets = 0
  }

  #leave(holding: Holding): void {
    holding.leave?.()
    holding.leave = null
  }
}
