import { FairQueue } from '../core/work/fair-queue.ts'
import { Fault } from '../core/fault.ts'
import { memoryPool } from '../core/memory-pool.ts'

export interface WorkLimits {
  /** The memory of items; unlimited by default. */
  memory?: MemoryLimits
  /** Items being worked on at once, of all accounts and of one; and their bytes, if that is given: one that is larger is worked on alone. */
  concurrent: { all: number; one: number; bytes?: number }
  /** Items of fewer bytes begin at once, and do not count among these. */
  large?: number
  /** Milliseconds after which an unfinished item no longer counts among these, as it waits for a slow server. */
  longest?: number
}

interface MemoryLimits {
  /** Bytes at once, of all accounts and of one. */
  all: number
  one: number
  /** Bytes that an account has whatever others have taken. */
  own?: number
  /** The bytes are in memory from when they are reserved: they count with all other kinds of memory (`core/memory-pool.ts`). */
  pooled?: true
  /** The message to a caller at the limit. */
  message: string
}

/** The share of one item. */
export interface WorkShare {
  /** Reserves memory for received bytes. Throws Fault rate_limited, code `too_much_at_once`, when a limit is reached. */
  reserve(this: void, bytes: number): void
  /** Releases all memory of this share. */
  release(this: void): void
  /** Releases all but so many bytes. */
  keep(this: void, bytes: number): void
  /** Resolves when it is the account's turn. Rejects when the signal aborts before. */
  begin(signal?: AbortSignal): Promise<void>
  /** Ends what has begun, so that others may begin. May be called again. */
  end(this: void): void
  /** Runs the work from `begin` to `end`. */
  run<Result>(signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result>
}

interface WaitingItem {
  bytes: number
  begin: () => void
}

/** Limits the memory of messages, up to 96 MiB of all and 64 MiB of one; not how many are worked on. */
export function messageMemory(message: string): Required<Pick<WorkLimits, 'memory' | 'concurrent'>> {
  const mebibyte = 1024 * 1024
  return {
    memory: { all: 96 * mebibyte, one: 64 * mebibyte, own: mebibyte, pooled: true, message },
    concurrent: { all: Infinity, one: Infinity },
  }
}

/** Limits the memory of items and how many are worked on at once, of all accounts and of each. Accounts take turns. */
export class WorkLimiter {
  readonly #limits: WorkLimits
  readonly #memory: MemoryShares | undefined
  readonly #waiting = new FairQueue<WaitingItem>()
  readonly #running = new Map<string, number>()
  #total = 0
  #bytes = 0

  constructor(limits: WorkLimits) {
    this.#limits = limits
    this.#memory = limits.memory && new MemoryShares(limits.memory)
  }

  /** True if an item waits for its turn. */
  get waiting(): boolean {
    return this.#waiting.size > 0
  }

  /** For an item of this account, or of this network when it has none. */
  share(account: string): WorkShare {
    const { large = 0, longest } = this.#limits
    let taken = 0
    let working: number | undefined
    let timer: NodeJS.Timeout | undefined
    const share: WorkShare = {
      reserve: (bytes) => {
        this.#memory?.take(account, bytes)
        taken += bytes
      },
      release: () => share.keep(0),
      keep: (bytes) => {
        const kept = Math.min(bytes, taken)
        this.#memory?.release(account, taken - kept)
        taken = kept
      },
      begin: async (signal) => {
        if (taken < large) return
        const bytes = taken
        await this.#waitForTurn(account, bytes, signal)
        working = bytes
        if (longest !== undefined) timer = setTimeout(share.end, longest).unref()
      },
      end: () => {
        clearTimeout(timer)
        if (working === undefined) return
        this.#count(account, -1, -working)
        working = undefined
        this.#next()
      },
      run: async (signal, work) => {
        await share.begin(signal)
        try {
          return await work()
        } finally {
          share.end()
        }
      },
    }
    return share
  }

  async #waitForTurn(account: string, bytes: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const begin = (): void => {
      signal?.removeEventListener('abort', leave)
      this.#count(account, 1, bytes)
      resolve()
    }
    const item = { bytes, begin }
    const leave = (): void => {
      if (this.#waiting.remove(account, item)) reject(signal?.reason as Error)
    }
    signal?.addEventListener('abort', leave, { once: true })
    this.#waiting.push(account, item)
    this.#next()
    await promise
  }

  #count(account: string, more: number, bytes: number): void {
    this.#total += more
    this.#bytes += bytes
    const count = (this.#running.get(account) ?? 0) + more
    if (count > 0) this.#running.set(account, count)
    else this.#running.delete(account)
  }

  /** Begins waiting items within the limits. */
  #next(): void {
    const { all, one, bytes: most = Infinity } = this.#limits.concurrent
    while (this.#total < all) {
      const room = this.#total === 0 ? Infinity : most - this.#bytes
      const item = this.#waiting.shift((account, { bytes }) => bytes <= room && (this.#running.get(account) ?? 0) < one)
      if (!item) return
      item.begin()
    }
  }
}

/** Memory in bytes that accounts share, with a limit for all of them and one for each. */
class MemoryShares {
  readonly #limits: MemoryLimits
  readonly #taken = new Map<string, number>()
  #all = 0

  constructor(limits: MemoryLimits) {
    this.#limits = limits
  }

  /** Throws Fault rate_limited, and takes nothing, when a limit would be exceeded. */
  take(account: string, bytes: number): void {
    const taken = (this.#taken.get(account) ?? 0) + bytes
    const { all, one, own = 0, message, pooled } = this.#limits
    const isTooMuch = taken > one || (this.#all + bytes > all && taken > own)
    if (isTooMuch || (pooled && !memoryPool.hasRoom(account, bytes))) {
      throw new Fault('rate_limited', message, { code: 'too_much_at_once', retryAfter: 1 })
    }
    if (pooled) memoryPool.add(account, bytes)
    this.#taken.set(account, taken)
    this.#all += bytes
  }

  release(account: string, bytes: number): void {
    if (this.#limits.pooled) memoryPool.add(account, -bytes)
    this.#all -= bytes
    const taken = (this.#taken.get(account) ?? 0) - bytes
    if (taken > 0) this.#taken.set(account, taken)
    else this.#taken.delete(account)
  }
}
