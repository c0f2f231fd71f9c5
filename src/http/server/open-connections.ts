import type { Socket } from 'node:net'
import { networkOf } from '../../net/networks.ts'

interface Network {
  /** Oldest first. */
  sockets: Set<Socket>
  /** Of a proxy, which speaks for many. */
  trusted: boolean
}

/** The open connections of a port, by the network that they come from: an address of IPv4, a /64 of IPv6. */
export class OpenConnections {
  readonly #networks = new Map<string, Network>()
  /** By address and port. */
  readonly #removals = new Map<string, () => void>()

  /**
   * Counts a connection until it is closed or removed. Where there are more than `max` then, the oldest of the network with most is closed, so that
   * those who hold theirs do not shut out others; the new one if no network has more than its own. One of a network that is not trusted takes the
   * place of none that is. Returns false if one was closed.
   */
  add(socket: Socket, { max, trusted }: { max: number; trusted: boolean }): boolean {
    const name = networkOf(socket.remoteAddress ?? '')
    const own = this.#networks.get(name) ?? { sockets: new Set(), trusted }
    this.#networks.set(name, own)
    own.sockets.add(socket)
    const peer = peerOf(socket)
    const remove = (): void => {
      own.sockets.delete(socket)
      if (own.sockets.size === 0) this.#networks.delete(name)
      if (this.#removals.get(peer) === remove) this.#removals.delete(peer)
    }
    this.#removals.set(peer, remove)
    socket.once('close', remove)
    if (this.#removals.size <= max) return true
    const [oldest = socket] = this.#largest(own)?.sockets ?? []
    this.remove(oldest)
    oldest.destroy()
    return false
  }

  /** Counts it no longer; the one above TLS does as well. */
  remove(socket: Socket): void {
    this.#removals.get(peerOf(socket))?.()
  }

  /** The network with most connections; undefined if that is `own`. */
  #largest(own: Network): Network | undefined {
    let largest = own
    for (const network of this.#networks.values()) {
      if ((own.trusted || !network.trusted) && network.sockets.size > largest.sockets.size) largest = network
    }
    return largest === own ? undefined : largest
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
