import { performance } from 'node:perf_hooks'
import type { SQLInputValue } from 'node:sqlite'
import { FairQueue } from '../../core/work/fair-queue.ts'
import { stopping } from './failures.ts'
import { SqliteThread, tooSlow } from './thread.ts'

interface Read {
  /** The account of the read; '' for the box itself. */
  account: string
  text: string
  values: SQLInputValue[]
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

/** Number of threads. An account uses one at a time, so that a long read leaves the other to other accounts. */
const threads = 2

/** Reads that may take long, in threads of their own: accounts take turns, one read of each at a time. The second thread begins when it is needed. */
export class SlowReads {
  readonly #threads: readonly SqliteThread[]
  readonly #free: SqliteThread[]
  readonly #waiting = new FairQueue<WaitingRead>()
  /** Accounts with a running read. */
  readonly #reading = new Set<string>()
  #stopped = false

  constructor(file: string) {
    this.#threads = Array.from({ length: threads }, () => new SqliteThread(file))
    this.#free = [...this.#threads]
  }

  read<Row>(read: Read): Promise<Row[]> {
    if (this.#stopped) return Promise.reject(stopping())
    const { account, deadline } = read
    return new Promise<Row[]>((resolve, reject) => {
      const late = (): void => {
        if (this.#waiting.remove(account, waiting))
          reject(tooSlow('The search waited too long for those before it. Try again later.'))
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
    await Promise.all(this.#threads.map((thread) => thread.stop()))
  }

  #next(): void {
    while (this.#free.length > 0) {
      const read = this.#waiting.shift((account) => !this.#reading.has(account))
      if (!read) return
      void this.#run(this.#free.shift()!, read)
    }
  }

  async #run(thread: SqliteThread, { account, text, values, until, timer, resolve, reject }: WaitingRead): Promise<void> {
    clearTimeout(timer)
    this.#reading.add(account)
    await thread.read(text, values, Math.max(1, until - performance.now())).then(resolve, reject)
    await thread.terminated()
    this.#reading.delete(account)
    // a started thread is used before one that is not started
    this.#free.unshift(thread)
    this.#next()
  }
}
