import { Worker } from 'node:worker_threads'
import type { SQLInputValue } from 'node:sqlite'
import { Fault } from '../core/fault.ts'

interface Pending {
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
  timer: NodeJS.Timeout | undefined
}

/** A thread with its own connection: for checkpoints, and for reads that may take long. One question at a time is answered. */
export class Helper {
  readonly #file: string
  readonly #pending = new Map<number, Pending>()
  #worker: Worker | undefined
  #last = 0

  constructor(file: string) {
    this.#file = file
  }

  /** Copies what it can from the log into the database file; answers how many frames the log holds. */
  async checkpoint(): Promise<number> {
    return (await this.#ask({ kind: 'checkpoint' })) as number
  }

  /** Gives up after `deadline` milliseconds with a Fault, and the thread with it. */
  async read<Row>(text: string, values: SQLInputValue[], deadline: number): Promise<Row[]> {
    return (await this.#ask({ kind: 'read', text, values }, deadline)) as Row[]
  }

  async stop(): Promise<void> {
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
  }

  #ask(question: object, deadline?: number): Promise<unknown> {
    const worker = (this.#worker ??= this.#start())
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      const timer = deadline === undefined ? undefined : setTimeout(() => this.#abandon(worker), deadline)
      this.#pending.set(id, { resolve, reject, timer })
      worker.postMessage({ id, ...question })
    })
  }

  #start(): Worker {
    const worker = new Worker(new URL('./sqlite-worker.ts', import.meta.url), { workerData: this.#file })
    worker.unref()
    worker.on('message', (answer: { id: number; value?: unknown; error?: Error }) => {
      const pending = this.#pending.get(answer.id)
      if (!pending) return
      this.#pending.delete(answer.id)
      clearTimeout(pending.timer)
      if (answer.error) pending.reject(answer.error)
      else pending.resolve(answer.value)
    })
    worker.on('error', (error) => this.#fail(worker, error))
    worker.on('exit', () => this.#fail(worker, new Error('The store’s helper thread ended.')))
    return worker
  }

  #abandon(worker: Worker): void {
    this.#fail(
      worker,
      new Fault('internal_error', 'The search took too long. Narrow it down.', { code: 'too_slow', retryAfter: 5 }),
    )
    void worker.terminate()
  }

  #fail(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.timer)
      pending.reject(error)
    }
    this.#pending.clear()
  }
}
