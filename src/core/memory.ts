import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { LRUCache } from 'lru-cache'

export { LRUCache }

/** Buffers of fewer bytes are left to the garbage collector. */
const large = 16 * 1024

/**
 * Frees the memory of a large buffer now, not at the next garbage collection: V8 collects buffers only after 64 MB of them. The buffer is empty
 * afterwards. A buffer that shares its memory with others is left alone.
 */
export function release(bytes: Uint8Array): void {
  const { buffer } = bytes
  if (bytes.length < large || bytes.length !== buffer.byteLength || !(buffer instanceof ArrayBuffer)) return
  buffer.transfer(0)
}

let collector: (() => void) | undefined

/** Runs a garbage collection, which blocks this thread: not for the main thread. */
export function collect(): void {
  if (!collector) {
    setFlagsFromString('--expose-gc')
    collector = runInNewContext('gc') as () => void
  }
  collector()
}

/** Memory in bytes that accounts share, with a limit for all of them and one for each. */
export class MemoryShares {
  readonly #limits: { all: number; one: number }
  readonly #taken = new Map<string, number>()
  #all = 0

  constructor(limits: { all: number; one: number }) {
    this.#limits = limits
  }

  /** Returns false, and takes nothing, when a limit would be exceeded. */
  take(account: string, bytes: number): boolean {
    const taken = (this.#taken.get(account) ?? 0) + bytes
    if (taken > this.#limits.one || this.#all + bytes > this.#limits.all) return false
    this.#taken.set(account, taken)
    this.#all += bytes
    return true
  }

  release(account: string, bytes: number): void {
    this.#all -= bytes
    const taken = (this.#taken.get(account) ?? 0) - bytes
    if (taken > 0) this.#taken.set(account, taken)
    else this.#taken.delete(account)
  }
}

/**
 * A map that drops the least recently used of its entries when there are more than `max`. Every `get` and `set` is a use. To drop the first entry of a
 * Map of 100,000 takes thirty times as long: it searches through the entries that were dropped before.
 */
export function lruMap<Value extends NonNullable<unknown>>(max: number): LRUCache<string, Value> {
  // memory for `max` entries would be reserved, for `maxSize` it is not
  return new LRUCache({ maxSize: max, sizeCalculation: () => 1 })
}
