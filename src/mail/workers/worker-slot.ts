import { performance } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import type { ExamineSettings, ExamineOrder, WorkerReport, Result, WorkerStart, Task } from './examine.ts'
import type { Envelope, Verdict } from '../model.ts'

/** A message to be examined, or, without an envelope, one whose attachments are to be extracted. */
export interface ExamineJob {
  raw: Buffer
  envelope: Envelope | null
  /** Indexes of the attachments to extract. */
  attachments: readonly number[]
  /** The text of a message composed here. */
  body_text?: string | undefined
  /** Of the caller: when it aborts, the job is dropped unless a worker has it. */
  signal?: AbortSignal | undefined
  /** The account of the message: of the first local recipient, or of the sender or reader; '' for none. */
  account: string
  /** It was in a worker that died, so it is processed alone now. */
  suspect: boolean
  /** The verdict of a worker, before the message was parsed. */
  verdict: Verdict | null
  done(result: Result, octets: Uint8Array[]): void
  /** Called when a worker died while processing it, and it is not retried. */
  killed(why: EndReason): void
  /** Called when it is abandoned without a result. */
  abandoned(): void
}

/** Why a worker ended. */
export type EndReason = 'deadline' | 'memory' | 'crash'

/** The part of a worker thread that a slot uses. */
export interface WorkerThread {
  on(event: 'message', listener: (report: WorkerReport) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit', listener: () => void): unknown
  postMessage(order: ExamineOrder, transfer: ArrayBuffer[]): void
  terminate(): Promise<unknown>
}

/** Starts a thread of the program at `url`, with `memory` megabytes of heap. */
export function startThread(url: URL, start: WorkerStart, memory: number): WorkerThread {
  // a small young generation: most objects are short-lived
  return new Worker(url, {
    name: 'examiner',
    workerData: start,
    resourceLimits: { maxOldGenerationSizeMb: memory, maxYoungGenerationSizeMb: 24 },
  })
}

interface WorkerSlotOptions {
  /** A worker thread that was just started. */
  thread: WorkerThread
  /** Shared memory with the id of the last task begun. */
  begun: Int32Array
  /** Called when the worker can take more. */
  onFree(): void
  onEnd(slot: WorkerSlot, why: EndReason, started: boolean): void
}

/** One worker thread and the jobs in it. */
export class WorkerSlot {
  readonly #worker: WorkerThread
  readonly #options: WorkerSlotOptions
  readonly #jobs = new Map<number, { job: ExamineJob; since: number }>()
  #started = false
  #ended = false
  #octets = 0
  #lastReport = 0
  #next = 1

  constructor(options: WorkerSlotOptions) {
    this.#options = options
    this.#worker = options.thread
    this.#worker.on('message', (report: WorkerReport) => this.#onReport(report))
    this.#worker.on('error', (error: Error) => this.end(codeOf(error) === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'crash'))
    this.#worker.on('exit', () => this.end('crash'))
    this.#lastReport = performance.now()
  }

  get started(): boolean {
    return this.#started && !this.#ended
  }

  get count(): number {
    return this.#jobs.size
  }

  /** Size of the messages in it, in bytes. */
  get octets(): number {
    return this.#octets
  }

  /** The jobs in it, the oldest first. */
  get jobs(): ExamineJob[] {
    return [...this.#jobs.values()].map(({ job }) => job)
  }

  /** The jobs that it has begun; all if unknown. */
  get begun(): ExamineJob[] {
    const last = Atomics.load(this.#options.begun, 0)
    const begun = [...this.#jobs].flatMap(([id, { job }]) => (id <= last ? [job] : []))
    return begun.length > 0 ? begun : this.jobs
  }

  /** Sends these jobs in one batch. The messages are copied. */
  post(jobs: ExamineJob[]) {
    const now = performance.now()
    if (this.#jobs.size === 0) this.#lastReport = now
    const octets = new Uint8Array(jobs.reduce((sum, job) => sum + job.raw.length, 0))
    let position = 0
    const tasks = jobs.map((job): Task => {
      octets.set(job.raw, position)
      const id = this.#next++
      this.#jobs.set(id, { job, since: now })
      const start = position
      position += job.raw.length
      const { envelope, attachments, suspect, body_text } = job
      return { id, start, end: position, envelope, attachments, suspect, ...(body_text === undefined ? {} : { body_text }) }
    })
    this.#octets += octets.length
    const order: ExamineOrder = { tasks, octets: octets.buffer }
    this.#worker.postMessage(order, [octets.buffer])
  }

  reload(settings: ExamineSettings) {
    const order: ExamineOrder = { settings }
    this.#worker.postMessage(order, [])
  }

  /** Ends the worker when it sent nothing for `silence` milliseconds, or when a job was in it for longer than `life` milliseconds. */
  check(silence: number, life: number) {
    const now = performance.now()
    const oldest = this.#jobs.values().next().value
    const silent =
      (oldest !== undefined || !this.#started) && now - this.#lastReport > (this.#started ? silence : Math.max(silence, 30_000))
    if (silent || (oldest && now - oldest.since > life)) this.end('deadline')
  }

  /** Terminates the worker. Its jobs are left to `onEnd`. */
  end(why: EndReason) {
    if (this.#ended) return
    this.#ended = true
    void this.#worker.terminate()
    this.#options.onEnd(this, why, this.#started)
  }

  /** Terminates the worker without calling `onEnd`. */
  async dismiss() {
    this.#ended = true
    await this.#worker.terminate()
  }

  #onReport(report: WorkerReport) {
    if (this.#ended) return
    this.#lastReport = performance.now()
    if ('verdict' in report) {
      const entry = this.#jobs.get(report.id)
      if (entry) entry.job.verdict = report.verdict
      return
    }
    if ('results' in report) {
      for (const result of report.results) {
        const entry = this.#jobs.get(result.id)
        if (!entry) continue
        this.#jobs.delete(result.id)
        this.#octets -= entry.job.raw.length
        entry.job.done(
          result,
          result.spans.map(([start, end]) => new Uint8Array(report.octets, start, end - start)),
        )
      }
    } else if (this.#started) return
    this.#started = true
    this.#options.onFree()
  }
}

function codeOf(error: Error): unknown {
  return 'code' in error ? error.code : undefined
}
