import type { Socket } from 'node:net'
import { networkOf } from '../../net/networks.ts'
import { isKnownNetwork } from '../../net/reading-turns.ts'

interface Network {
  name: string
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
   * those who hold theirs do not shut out others; the new one if no network has more than its own. Strangers never take the place of a proxy or of a
   * network from which a caller was admitted lately, and always give way to these. Returns false if a connection was closed.
   */
  add(socket: Socket, { max, trusted }: { max: number; trusted: boolean }): boolean {
    const name = networkOf(socket.remoteAddress ?? '')
    const own = this.#networks.get(name) ?? { name, sockets: new Set(), trusted }
    this.#networks.set(name, own)
    own.sockets.add(socket)
    const peer = peerOf(socket)
    const remove = (): void => {
      if (!own.sockets.delete(socket)) return
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

  /** The network that gives way to `own`; undefined if none does. */
  #largest(own: Network): Network | undefined {
    let known: Network | undefined
    let strange: Network | undefined
    for (const network of this.#networks.values()) {
      const { size } = network.sockets
      if (isPreferred(network)) {
        if (size > (known?.sockets.size ?? own.sockets.size)) known = network
      } else if (size > (strange?.sockets.size ?? 0)) strange = network
    }
    if (isPreferred(own)) return strange ?? known
    return strange && strange.sockets.size > own.sockets.size ? strange : undefined
  }
}

function isPreferred({ name, trusted }: Network): boolean {
  return trusted || isKnownNetwork(name)
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
