import type { Socket } from 'node:net'
import { NetworkCounts, type Networks } from '../../net/networks.ts'

/** How many connections one address may hold, an IPv6 /56 four and a /48 sixteen times as many; trusted proxies, which speak for many, are not counted. */
export interface AddressLimit {
  perAddress: number
  trusted: Networks
}

/** Counts open connections by network, so that nobody without a key can take all of them. */
export class AddressLimiter {
  readonly #from = new NetworkCounts()
  readonly #refused: () => void
  #limit: AddressLimit

  /** `refused` is called for each that is closed as one too many. */
  constructor(limit: AddressLimit, refused: () => void = () => undefined) {
    this.#limit = limit
    this.#refused = refused
  }

  /** For connections to come; those that are open stay. */
  limit(limit: AddressLimit): void {
    this.#limit = limit
  }

  /** Counts a connection until it closes, or closes it when its address has too many. */
  enter(socket: Socket): void {
    const address = socket.remoteAddress
    // a peer that has left already has no address
    if (address === undefined || this.#limit.trusted.has(address)) return
    if (this.#from.add(address, this.#limit.perAddress)) {
      socket.once('close', () => this.#from.remove(address))
      return
    }
    this.#refused()
    socket.destroy()
  }
}
