import type { Socket } from 'node:net'
import { networkShares, networksOf } from '../../net/networks.ts'
import { isKnownNetwork } from '../../net/reading-turns.ts'

interface Connection {
  socket: Socket
  /** Narrowest first. */
  networks: readonly string[]
  /** Of a proxy, which speaks for many. */
  trusted: boolean
}

interface Network {
  share: number
  /** Oldest first. */
  connections: Set<Connection>
}

/** Connections for the width of a network, up to which it is preferred for a caller that was admitted: more than an honest one needs. */
const maxPreferred = 16

/** The open connections of a port, by the networks that they come from. */
export class OpenConnections {
  readonly #networks = new Map<string, Network>()
  /** By address and port. */
  readonly #removals = new Map<string, () => void>()

  /**
   * Counts a connection until it is closed or removed. Where there are more than `max` then, the oldest of the network with most for its width is
   * closed, so that those who hold theirs do not shut out others; the new one if no network has more than its own. Strangers never take the place of a
   * proxy or of a network from which a caller was admitted lately and that has few, and always give way to these. Returns false if a connection was
   * closed.
   */
  add(socket: Socket, { max, trusted }: { max: number; trusted: boolean }): boolean {
    const own: Connection = { socket, networks: networksOf(socket.remoteAddress ?? ''), trusted }
    for (const [index, name] of own.networks.entries()) {
      const network = this.#networks.get(name) ?? { share: networkShares[index]!, connections: new Set() }
      network.connections.add(own)
      this.#networks.set(name, network)
    }
    const peer = peerOf(socket)
    const remove = (): void => {
      for (const name of own.networks) {
        const network = this.#networks.get(name)
        if (network?.connections.delete(own) && network.connections.size === 0) this.#networks.delete(name)
      }
      if (this.#removals.get(peer) === remove) this.#removals.delete(peer)
    }
    this.#removals.set(peer, remove)
    socket.once('close', remove)
    if (this.#removals.size <= max) return true
    const { socket: closed } = this.#leaving(own)
    this.remove(closed)
    closed.destroy()
    return false
  }

  /** Counts it no longer; the one above TLS does as well. */
  remove(socket: Socket): void {
    this.#removals.get(peerOf(socket))?.()
  }

  /** The connection that gives way to a new one, or the new one. */
  #leaving(own: Connection): Connection {
    const isStrange = (one: Connection): boolean => !this.#isPreferred(one)
    if (isStrange(own)) return this.#oldest(this.#loadOf(own), isStrange) ?? own
    return this.#oldest(0, isStrange) ?? this.#oldest(this.#loadOf(own), () => true) ?? own
  }

  #isPreferred(connection: Connection): boolean {
    return connection.trusted || (isKnownNetwork(connection.networks[0]!) && this.#loadOf(connection) <= maxPreferred)
  }

  /** That of the network with most for its width. */
  #loadOf({ networks }: Connection): number {
    return Math.max(...networks.map((name) => loadOf(this.#networks.get(name)!)))
  }

  /** The oldest of these connections in the network with most, if it has more than `least`. */
  #oldest(least: number, among: (connection: Connection) => boolean): Connection | undefined {
    let most = least
    let oldest: Connection | undefined
    for (const network of this.#networks.values()) {
      if (loadOf(network) <= most) continue
      for (const connection of network.connections) {
        if (!among(connection)) continue
        most = loadOf(network)
        oldest = connection
        break
      }
    }
    return oldest
  }
}

/** How many connections a network has for its width. */
function loadOf({ share, connections }: Network): number {
  return connections.size / share
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
