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

/** Sets an entry of a map that holds at most `max`, as its newest one: the one that was set the longest ago is dropped. */
export function setNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, max: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > max) map.delete(map.keys().next().value!)
}

/**
 * A map that drops the least recently used of its entries when there are more than `max`. Every `get` and `set` is a use. To drop the first entry of a
 * Map of 100,000 takes thirty times as long: it searches through the entries that were dropped before.
 */
export function lruMap<Value extends NonNullable<unknown>>(max: number): LRUCache<string, Value> {
  // memory for `max` entries would be reserved, for `maxSize` it is not
  return new LRUCache({ maxSize: max, sizeCalculation: () => 1 })
}
