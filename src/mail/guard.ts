import { isIPv6 } from 'node:net'

export interface ConnectionLimits {
  max_connections: number
  max_connections_per_address: number
}

/** Counts the open connections: all of them, and those of each IPv4 address or IPv6 /64. */
export class Guard {
  readonly #from = new Map<string, number>()
  #open = 0

  get open(): number {
    return this.#open
  }

  /** Counts a connection in, unless the house is `full` or its own neighbourhood `crowded`. */
  admit(address: string, limits: ConnectionLimits): 'welcome' | 'full' | 'crowded' {
    const neighbourhood = neighbourhoodOf(address)
    const others = this.#from.get(neighbourhood) ?? 0
    if (this.#open >= limits.max_connections) return 'full'
    if (others >= limits.max_connections_per_address) return 'crowded'
    this.#open++
    this.#from.set(neighbourhood, others + 1)
    return 'welcome'
  }

  /** Counts an admitted connection out; once for each `welcome`. */
  release(address: string): void {
    const neighbourhood = neighbourhoodOf(address)
    const others = (this.#from.get(neighbourhood) ?? 1) - 1
    this.#open--
    if (others === 0) this.#from.delete(neighbourhood)
    else this.#from.set(neighbourhood, others)
  }
}

/** One customer's network: an IPv4 address, also in its IPv6-mapped spelling, or the /64 of an IPv6 address. */
export function neighbourhoodOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped?.[1]) return mapped[1]
  if (!isIPv6(address)) return address
  const [bare = ''] = address.toLowerCase().split('%')
  const [head = '', tail] = bare.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  const groups = [...left, ...Array.from({ length: zeros }, () => '0'), ...right]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
