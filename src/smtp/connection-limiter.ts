import { NetworkCounts } from '../net/networks.ts'

export interface ConnectionLimits {
  max_connections: number
  max_connections_per_address: number
}

/** Counts the open connections: all of them, and those of each network. */
export class ConnectionLimiter {
  readonly #from = new NetworkCounts()
  #open = 0

  get open(): number {
    return this.#open
  }

  /** Counts a connection in, unless the house is `full` or one of its networks `crowded`. */
  admit(address: string, limits: ConnectionLimits): 'welcome' | 'full' | 'crowded' {
    if (this.#open >= limits.max_connections) return 'full'
    if (!this.#from.enter(address, limits.max_connections_per_address)) return 'crowded'
    this.#open++
    return 'welcome'
  }

  /** Counts an admitted connection out; once for each `welcome`. */
  release(address: string): void {
    this.#from.leave(address)
    this.#open--
  }
}
