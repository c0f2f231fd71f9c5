import { performance } from 'node:perf_hooks'
import { FairQueue } from '../core/work/fair-queue.ts'
import type { Value } from './database.ts'
import { stopping, tooManyReads, tooSlow } from './faults.ts'

/** Runs slow reads, one at a time: a thread or a connection of its own. */
export interface SlowReader {
  /** Runs a query. After `deadline` milliseconds it throws Fault `too_slow`. */
  read<Row>(text: string, values: Value[], deadline: number): Promise<Row[]>
  /** Resolves when an aborted read has ended, which may take until the engine yields. */
  terminated(): Promise<void>
  /** Aborts the running read. */
  stop(): Promise<void>
}

interface Read {
  /** The account of the read; '' for the box itself. */
  account: string
  text: string
  values: Value[]
  /** Timeout in milliseconds, counted from the call. */
  deadline: number
}

interface WaitingRead extends Read {
  /** By `performance.now()`. */
  until: number
  timer: NodeJS.Timeout
  resolve: (rows: unknown[]) => void
  reject: (error: unknown) => void
}

const busy = 'The search waited too long for those of others. Try again later.'

/** Number of readers. An account uses one at a time, so that a long read leaves the other to other accounts. */
const count = 2

/** Reads that may take long, each by a reader: accounts take turns, one read of each at a time. The second reader begins when it is needed. */
export class SlowReads {
  readonly #readers: readonly SlowReader[]
  readonly #free: SlowReader[]
  readonly #waiting = new FairQueue<WaitingRead>()
  /** Accounts with a running read. */
  readonly #reading = new Set<string>()
  #stopped = false

  constructor(open: () => SlowReader) {
    this.#readers = Array.from({ length: count }, open)
    this.#free = [...this.#readers]
  }

  /** Throws Fault `too_slow` after its deadline, or rate_limited, `too_many_waiting`, where it waited for others of its account until then. */
  read<Row>(read: Read): Promise<Row[]> {
    if (this.#stopped) return Promise.reject(stopping())
    const { account, deadline } = read
    return new Promise<Row[]>((resolve, reject) => {
      const late = (): void => {
        if (this.#waiting.remove(account, waiting)) reject(this.#reading.has(account) ? tooManyReads() : tooSlow(busy))
      }
      const timer = setTimeout(late, deadline)
      const until = performance.now() + deadline
      const waiting: WaitingRead = { ...read, until, timer, resolve: resolve as (rows: unknown[]) => void, reject }
      this.#waiting.push(account, waiting)
      this.#next()
    })
  }

  /** Aborts running reads and rejects waiting ones. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const { timer, reject } of this.#waiting.clear()) {
      clearTimeout(timer)
      reject(stopping())
    }
    await Promise.all(this.#readers.map((reader) => reader.stop()))
  }

  #next(): void {
    while (this.#free.length > 0) {
      const read = this.#waiting.shift((account) => !this.#reading.has(account))
      if (!read) return
      void this.#run(this.#free.shift()!, read)
    }
  }

  async #run(reader: SlowReader, { account, text, values, until, timer, resolve, reject }: WaitingRead): Promise<void> {
    clearTimeout(timer)
    this.#reading.add(account)
    await reader.read(text, values, Math.max(1, until - performance.now())).then(resolve, reject)
    await reader.terminated()
    this.#reading.delete(account)
    // a started one is used before one that is not started
    this.#free.unshift(reader)
    this.#next()
  }
}
