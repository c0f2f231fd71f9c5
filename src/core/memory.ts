import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { LRUCache } from 'lru-cache'

export { LRUCache }

/** Buffers of fewer bytes are left to the garbage collector. */
const large = 4 * 1024

/**
 * Frees the memory of a large buffer now, not at the next garbage collection: V8 collects buffers only after 64 MB of them. The buffer is empty
 * afterwards. A buffer that shares its memory with others is left alone.
 */
export function release(bytes: Uint8Array): void {
  const { buffer } = bytes
  if (bytes.length < large || bytes.length !== buffer.byteLength || !(buffer instanceof ArrayBuffer)) return
  buffer.transfer(0)
}

/**
 * A copy of a short part of a text. The part that `slice` returns keeps the whole text in memory for as long as it exists itself.
 */
export function detached(part: string): string {
  return Buffer.from(part, 'utf16le').toString('utf16le')
}

let collector: ((how: { type: 'major'; flavor: 'regular' | 'last-resort' }) => void) | undefined

/**
 * Runs a garbage collection, which blocks this thread. The thorough one takes longer, and
 * frees what is cached too.
 */
export function collect(thorough = false): void {
  if (!collector) {
    setFlagsFromString('--expose-gc')
    collector = runInNewContext('gc') as NonNullable<typeof collector>
  }
  collector({ type: 'major', flavor: thorough ? 'last-resort' : 'regular' })
}

const mebibyte = 1024 * 1024

let relieved = -Infinity

/** Bytes of a process that is large. Tests set more, as their process has more in it than a box. */
export const largeProcess = { bytes: 400 * mebibyte }

/** Milliseconds after which a process that was large collects once more. */
const settling = 2000

let last: NodeJS.Timeout | undefined

/**
 * Collects garbage if the process is large, for the caller who has just dropped much: V8 lets the heap and the buffers that it holds grow to twice what
 * is in use. Blocks the main thread for 50 to 100 ms: above 400 MiB once in a second at most, above 500 MiB eight times. What others drop a little later
 * is collected two seconds after: without further work it would be kept.
 */
export function relieve(): void {
  const now = performance.now()
  if (now - relieved < 120) return
  const more = process.memoryUsage.rss() - largeProcess.bytes
  if (more < 0) return
  last ??= setTimeout(() => {
    last = undefined
    if (process.memoryUsage.rss() > largeProcess.bytes) collect()
  }, settling).unref()
  if (more < 100 * mebibyte && now - relieved < 1000) return
  relieved = now
  collect()
}

/**
 * A map that drops the least recently used of its entries when there are more than `max`. Every `get` and `set` is a use. To drop the first
 * entry of a Map of 100,000 takes thirty times as long: it searches through the entries that were dropped before.
 */
export function lruMap<Value extends NonNullable<unknown>>(max: number): LRUCache<string, Value> {
  // memory for `max` entries would be reserved, for `maxSize` it is not
  return new LRUCache({ maxSize: max, sizeCalculation: () => 1 })
}

/**
 * The same with at most so many bytes, for values whose size others choose. `sizeOf` estimates an entry, a few hundred bytes for itself included.
 * Entries are dropped `lifetime` milliseconds after they were set, if it is given.
 */
export function lruMapOfBytes<Value extends NonNullable<unknown>>(
  maxBytes: number,
  sizeOf: (value: Value, key: string) => number,
  lifetime?: number,
): LRUCache<string, Value> {
  const expiry = lifetime === undefined ? {} : { ttl: lifetime, ttlAutopurge: true }
  return new LRUCache({ maxSize: maxBytes, sizeCalculation: sizeOf, ...expiry })
}

/** Texts of more characters are not kept by `remembered`. */
const longestText = 2000

/**
 * The same function, which keeps what it found of the texts that were used last, up to about a mebibyte: for what repeats in all messages of a sender. What
 * it returns must not be changed.
 */
export function remembered<Value extends NonNullable<unknown>>(
  find: (text: string) => Value,
  sizeOf: (found: Value) => number,
): (text: string) => Value {
  const known = lruMapOfBytes<Value>(mebibyte, (found, text) => 200 + 2 * text.length + sizeOf(found))
  return (text) => {
    if (text.length > longestText) return find(text)
    const before = known.get(text)
    if (before !== undefined) return before
    const found = find(text)
    known.set(text, found)
    return found
  }
}

/** About how many bytes a JSON value and its text in UTF-8 have in memory. */
export function estimatedBytes(value: unknown): number {
  if (typeof value === 'string') return 16 + 5 * value.length
  if (typeof value !== 'object' || value === null) return 16
  let sum = 64
  for (const one of Object.values(value)) sum += estimatedBytes(one)
  return sum
}
