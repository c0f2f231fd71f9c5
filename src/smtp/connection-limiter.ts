import { NetworkCounts } from '../net/networks.ts'

export interface ConnectionLimits {
  max_connections: number
  max_connections_per_address: number
}

/** Counts the open connections, in total and by network. */
export class ConnectionLimiter {
  readonly #from = new NetworkCounts()
  #open = 0

  get open(): number {
    return this.#open
  }

  /** Counts a new connection, unless the server (`server_full`) or one of the client's networks (`network_full`) is at its limit. */
  admit(address: string, limits: ConnectionLimits): 'admitted' | 'server_full' | 'network_full' {
    if (this.#open >= limits.max_connections) return 'server_full'
    if (!this.#from.add(address, limits.max_connections_per_address)) return 'network_full'
    this.#open++
    return 'admitted'
  }

  /** Counts the end of an admitted connection. Called once for each `admitted`. */
  release(address: string): void {
    this.#from.remove(address)
    this.#open--
  }
}
