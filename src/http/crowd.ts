import type { Socket } from 'node:net'
import { neighbourhood } from '../core/networks.ts'
import type { Networks } from '../core/networks.ts'

/** How many connections one address may hold; trusted proxies, which speak for many, are not counted. */
export interface CrowdLimit {
  perAddress: number
  trusted: Networks
}

/** Counts open connections by address (IPv6: by /64), so that nobody without a key can take all of them. */
export class Crowd {
  readonly #from = new Map<string, number>()
  readonly #refused: () => void
  #limit: CrowdLimit

  /** `refused` is called for each that is closed as one too many. */
  constructor(limit: CrowdLimit, refused: () => void = () => undefined) {
    this.#limit = limit
    this.#refused = refused
  }

  /** For connections to come; those that are open stay. */
  limit(limit: CrowdLimit): void {
    this.#limit = limit
  }

  /** Counts a connection until it closes, or closes it when its address has too many. */
  enter(socket: Socket): void {
    const address = socket.remoteAddress
    // a peer that has left already has no address
    if (address === undefined || this.#limit.trusted.has(address)) return
    const home = neighbourhood(address)
    const others = this.#from.get(home) ?? 0
    if (others >= this.#limit.perAddress) {
      this.#refused()
      socket.destroy()
      return
    }
    this.#from.set(home, others + 1)
    socket.once('close', () => this.#leave(home))
  }

  #leave(home: string): void {
    const left = this.#from.get(home)! - 1
    if (left === 0) this.#from.delete(home)
    else this.#from.set(home, left)
  }
}
