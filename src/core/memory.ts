import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Octets from which memory is worth giving back at once. */
const large = 16 * 1024

/**
 * Gives the memory of large octets back now, not when garbage is collected: V8 lets 64 MB of buffers gather before it looks for those that
 * nobody uses. They are empty afterwards, so nobody may need them any more. Octets that share their memory with others are left alone.
 */
export function release(octets: Uint8Array): void {
  const { buffer } = octets
  if (octets.length < large || octets.length !== buffer.byteLength || !(buffer instanceof ArrayBuffer)) return
  buffer.transfer(0)
}

let collector: (() => void) | undefined

/** Collects the garbage of this thread, which stands still for as long as that takes: not for the main thread. */
export function collect(): void {
  if (!collector) {
    setFlagsFromString('--expose-gc')
    collector = runInNewContext('gc') as () => void
  }
  collector()
}

/** Memory that is shared by accounts, counted in octets, with a share that no one of them goes beyond. */
export class MemoryShares {
  readonly #most: { all: number; one: number }
  readonly #held = new Map<string, number>()
  #all = 0

  constructor(most: { all: number; one: number }) {
    this.#most = most
  }

  /** Answers whether there was room; without it nothing is taken. */
  take(holder: string, octets: number): boolean {
    const held = (this.#held.get(holder) ?? 0) + octets
    if (held > this.#most.one || this.#all + octets > this.#most.all) return false
    this.#held.set(holder, held)
    this.#all += octets
    return true
  }

  give(holder: string, octets: number): void {
    this.#all -= octets
    const held = (this.#held.get(holder) ?? 0) - octets
    if (held > 0) this.#held.set(holder, held)
    else this.#held.delete(holder)
  }
}
