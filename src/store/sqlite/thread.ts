import { Worker } from 'node:worker_threads'
import type { SQLInputValue } from 'node:sqlite'
import { Fault } from '../../core/fault.ts'
import { stopping } from './failures.ts'

interface Asked {
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
  timer: NodeJS.Timeout | undefined
}

interface Answer {
  id: number
  value?: unknown
  failure?: { message: string; errcode?: number }
}

/** A thread with its own connection: for checkpoints, and for reads that may take long. One question at a time. */
export class SqliteThread {
  readonly #file: string
  #asked: Asked | undefined
  #worker: Worker | undefined
  #leaving: Promise<void> | undefined
  #last = 0
  #stopped = false

  constructor(file: string) {
    this.#file = file
  }

  /** Resolves when the thread of a read that was given up has ended: SQLite may be deep in it, and another asks for a thread of its own. */
  async left(): Promise<void> {
    await this.#leaving
  }

  /** Copies what it can from the log into the database file; answers how many frames the log holds. */
  async checkpoint(): Promise<number> {
    return (await this.#ask({ kind: 'checkpoint' })) as number
  }

  /** Gives up `deadline` milliseconds after the call with a Fault; what is asked next goes to a new thread. */
  async read<Row>(text: string, values: SQLInputValue[], deadline: number): Promise<Row[]> {
    return (await this.#ask({ kind: 'read', text, values }, deadline)) as Row[]
  }

  /** What is under way is given up. */
  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#asked) this.#drop(stopping())
    else await this.#worker?.terminate()
    await this.#leaving
  }

  async #ask(question: object, deadline?: number): Promise<unknown> {
    // a thread that is being ended may still be deep in SQLite: never two of them at work
    await this.#leaving
    if (this.#stopped) throw stopping()
    if (this.#asked) throw new Error('The store’s helper thread was asked while it had a question.')
    return new Promise((resolve, reject) => {
      const asked: Asked = { resolve, reject, timer: undefined }
      if (deadline !== undefined) asked.timer = setTimeout(() => this.#drop(tooSlow()), deadline)
      this.#asked = asked
      this.#worker ??= this.#start()
      this.#worker.postMessage({ id: ++this.#last, ...question }, [])
    })
  }

  #start(): Worker {
    const worker = new Worker(new URL('./thread-worker.ts', import.meta.url), {
      name: 'store',
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
      workerData: this.#file,
    })
    worker.unref()
    worker.on('message', (answer: Answer) => {
      const asked = this.#asked
      if (!asked || answer.id !== this.#last) return
      this.#asked = undefined
      settle(asked)
      if (answer.failure) asked.reject(Object.assign(new Error(answer.failure.message), answer.failure))
      else asked.resolve(answer.value)
    })
    worker.on('error', (error) => this.#gone(worker, error))
    worker.on('exit', () => this.#gone(worker, new Error('The store’s helper thread ended.')))
    return worker
  }

  #gone(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    const asked = this.#asked
    this.#asked = undefined
    if (asked) settle(asked).reject(error)
  }

  /** Rejects what is asked now and ends the thread that works on it. */
  #drop(error: unknown): void {
    const asked = this.#asked!
    const worker = this.#worker!
    this.#asked = undefined
    this.#worker = undefined
    settle(asked).reject(error)
    this.#leaving = this.#end(worker)
  }

  async #end(worker: Worker): Promise<void> {
    await worker.terminate()
    this.#leaving = undefined
  }
}

/** What is told of a read that had no answer in time. */
export function tooSlow(): Fault {
  return new Fault('internal_error', 'The search took too long. Narrow it down.', { code: 'too_slow', retryAfter: 5 })
}

function settle(asked: Asked): Asked {
  clearTimeout(asked.timer)
  return asked
}
