import { Worker } from 'node:worker_threads'
import type { SQLInputValue } from 'node:sqlite'
import { stopping, tooSlow } from '../faults.ts'

interface PendingRequest {
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
  timer: NodeJS.Timeout | undefined
}

interface Answer {
  id: number
  value?: unknown
  failure?: { message: string; errcode?: number }
}

/** A thread with its own connection, for checkpoints and slow reads. One request at a time. */
export class SqliteThread {
  readonly #file: string
  #pending: PendingRequest | undefined
  #worker: Worker | undefined
  #terminating: Promise<void> | undefined
  #last = 0
  #stopped = false

  constructor(file: string) {
    this.#file = file
  }

  /** Resolves when the thread of an aborted read has ended, which may take until SQLite yields. */
  async terminated(): Promise<void> {
    await this.#terminating
  }

  /** Copies as much as possible of the log into the database file. Returns the number of frames in the log. */
  async checkpoint(): Promise<number> {
    return (await this.#request({ kind: 'checkpoint' })) as number
  }

  /** Runs a query. After `deadline` milliseconds it throws a Fault, and the next request starts a new thread. */
  async read<Row>(text: string, values: SQLInputValue[], deadline: number): Promise<Row[]> {
    return (await this.#request({ kind: 'read', text, values }, deadline)) as Row[]
  }

  /** Aborts the running request. */
  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#pending) this.#drop(stopping())
    else await this.#worker?.terminate()
    await this.#terminating
  }

  async #request(request: object, deadline?: number): Promise<unknown> {
    // a thread that is being terminated may still be running SQLite: never two at once
    await this.#terminating
    if (this.#stopped) throw stopping()
    if (this.#pending) throw new Error('The store’s helper thread has a request already.')
    return new Promise((resolve, reject) => {
      const pending: PendingRequest = { resolve, reject, timer: undefined }
      if (deadline !== undefined) pending.timer = setTimeout(() => this.#drop(tooSlow()), deadline)
      this.#pending = pending
      this.#worker ??= this.#start()
      this.#worker.postMessage({ id: ++this.#last, ...request }, [])
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
      const pending = this.#pending
      if (!pending || answer.id !== this.#last) return
      this.#pending = undefined
      settle(pending)
      if (answer.failure) pending.reject(Object.assign(new Error(answer.failure.message), answer.failure))
      else pending.resolve(answer.value)
    })
    worker.on('error', (error) => this.#gone(worker, error))
    worker.on('exit', () => this.#gone(worker, new Error('The store’s helper thread ended.')))
    return worker
  }

  #gone(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    const pending = this.#pending
    this.#pending = undefined
    if (pending) settle(pending).reject(error)
  }

  /** Rejects the running request and terminates its thread. */
  #drop(error: unknown): void {
    const pending = this.#pending!
    const worker = this.#worker!
    this.#pending = undefined
    this.#worker = undefined
    settle(pending).reject(error)
    this.#terminating = this.#end(worker)
  }

  async #end(worker: Worker): Promise<void> {
    await worker.terminate()
    this.#terminating = undefined
  }
}

function settle(pending: PendingRequest): PendingRequest {
  clearTimeout(pending.timer)
  return pending
}
