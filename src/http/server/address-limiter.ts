import type { Socket } from 'node:net'
import { NetworkCounts, type Networks } from '../../net/networks.ts'

/**
 * How many connections one address may hold, an IPv6 /56 four and a /48 sixteen times as many; trusted reverse proxies, which serve many clients, are
 * not counted.
 */
export interface AddressLimit {
  perAddress: number
  trusted: Networks
}

/** Limits open connections by network, so that no client can take all of them. */
export class AddressLimiter {
  readonly #counts = new NetworkCounts()
  readonly #refused: () => void
  #limit: AddressLimit

  /** `refused` is called for each connection that is closed as it exceeds the limit. */
  constructor(limit: AddressLimit, refused: () => void = () => undefined) {
    this.#limit = limit
    this.#refused = refused
  }

  /** Changes the limit for new connections; open ones stay. */
  setLimit(limit: AddressLimit): void {
    this.#limit = limit
  }

  /** Counts a connection until it closes, or closes it at once when the limit is reached. */
  enter(socket: Socket): void {
    const address = socket.remoteAddress
    // a peer that has disconnected has no address
    if (address === undefined || this.#limit.trusted.has(address)) return
    if (this.#counts.add(address, this.#limit.perAddress)) {
      socket.once('close', () => this.#counts.remove(address))
      return
    }
    this.#refused()
    socket.destroy()
  }
}
