import { performance } from 'node:perf_hooks'
import type { SQLInputValue } from 'node:sqlite'
import { FairQueue } from '../../core/fair-queue.ts'
import { stopping } from './failures.ts'
import { SqliteThread, tooSlow } from './thread.ts'

interface Read {
  /** Whose read it is; '' for the box's own. */
  account: string
  text: string
  values: SQLInputValue[]
  /** Milliseconds after which it is given up, counted from when it is asked for. */
  deadline: number
}

interface Waiting extends Read {
  /** By `performance.now()`. */
  until: number
  timer: NodeJS.Timeout
  resolve: (rows: unknown[]) => void
  reject: (error: unknown) => void
}

/** Threads that read. An account has one of them at a time, so that a long read of one leaves the other to the rest. */
const threads = 2

/** Reads that may take long, in threads of their own: accounts take turns, one read of each at a time. The second thread begins when it is needed. */
export class SlowReads {
  readonly #helpers: readonly SqliteThread[]
  readonly #free: SqliteThread[]
  readonly #waiting = new FairQueue<Waiting>()
  /** Accounts of which a read is under way. */
  readonly #reading = new Set<string>()
  #stopped = false

  constructor(file: string) {
    this.#helpers = Array.from({ length: threads }, () => new SqliteThread(file))
    this.#free = [...this.#helpers]
  }

  read<Row>(read: Read): Promise<Row[]> {
    if (this.#stopped) return Promise.reject(stopping())
    const { account, deadline } = read
    return new Promise<Row[]>((resolve, reject) => {
      const late = (): void => {
        if (this.#waiting.remove(account, waiting)) reject(tooSlow())
      }
      const timer = setTimeout(late, deadline)
      const until = performance.now() + deadline
      const waiting: Waiting = { ...read, until, timer, resolve: resolve as (rows: unknown[]) => void, reject }
      this.#waiting.push(account, waiting)
      this.#next()
    })
  }

  /** What is under way is given up. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const { timer, reject } of this.#waiting.clear()) {
      clearTimeout(timer)
      reject(stopping())
    }
    await Promise.all(this.#helpers.map((helper) => helper.stop()))
  }

  #next(): void {
    while (this.#free.length > 0) {
      const read = this.#waiting.shift((account) => !this.#reading.has(account))
      if (!read) return
      void this.#run(this.#free.shift()!, read)
    }
  }

  async #run(helper: SqliteThread, { account, text, values, until, timer, resolve, reject }: Waiting): Promise<void> {
    clearTimeout(timer)
    this.#reading.add(account)
    await helper.read(text, values, Math.max(1, until - performance.now())).then(resolve, reject)
    await helper.left()
    this.#reading.delete(account)
    // the thread that has begun is asked before the one that has not
    this.#free.unshift(helper)
    this.#next()
  }
}
