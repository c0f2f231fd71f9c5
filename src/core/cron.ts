import { performance } from 'node:perf_hooks'
import { createTask } from 'node-cron'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import type { Counter, Gauge, Metrics } from './metrics.ts'
import { setTimeout as sleep } from 'node:timers/promises'

export interface CronJob {
  name: string
  /** Cron syntax, UTC; six fields when the first is seconds. */
  schedule: string
  /** True if each of several boxes runs it: it is about what is in its memory, its files or its machine. Others are run by one of them. */
  everywhere?: true
  /** The signal aborts when the box stops; a long run must end then. */
  run(signal?: AbortSignal): Promise<void>
}

export interface ScheduleTest {
  idle?: boolean
}

/** Milliseconds after which the time of day is looked at again: it may have jumped back. */
const longest = 30_000

/** The scheduled jobs of the box. Runs of one job do not overlap. A failed run is logged and does not prevent the next one. */
export class Schedule {
  readonly #log: Log
  readonly #timers = new Map<string, NodeJS.Timeout>()
  readonly #running = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  readonly #clock: Clock
  readonly #idle: boolean
  readonly #leads: (job: string) => Promise<boolean>
  readonly #runs: Counter<'task' | 'result'>
  readonly #times: Gauge<'task'>
  /** The time each job last succeeded, in seconds since the Unix epoch. */
  readonly #lastSuccess = new Map<string, number>()

  /** With `idle`, used by tests, no job runs on its schedule. `leads` is true if this box runs a job for all of several. */
  constructor(
    log: Log,
    clock: Clock,
    metrics: Metrics,
    { idle = false }: ScheduleTest = {},
    leads: (job: string) => Promise<boolean> = async () => true,
  ) {
    this.#leads = leads
    this.#log = log
    this.#idle = idle
    this.#clock = clock
    this.#runs = metrics.counter('pillarbox_schedule_runs_total', 'Runs of scheduled jobs: done, failed', ['task', 'result'])
    this.#times = metrics.gauge(
      'pillarbox_schedule_run_seconds',
      'Duration of the last run of a scheduled job in seconds',
      () => undefined,
      ['task'],
    )
    metrics.gauge(
      'pillarbox_schedule_success_timestamp_seconds',
      'Unix time of the last successful run of a scheduled job; before the first one, of its scheduling',
      (gauge) => {
        for (const [name, at] of this.#lastSuccess) gauge.labels(name).set(at)
      },
      ['task'],
    )
  }

  add(job: CronJob): void {
    this.#runs.labels(job.name, 'done').inc(0)
    this.#runs.labels(job.name, 'failed').inc(0)
    this.#lastSuccess.set(job.name, this.#now())
    if (this.#idle) return
    // the library tells when; by its own timers it would go through all that was missed, on the main thread, when the clock jumps forward by years
    const task = createTask(job.schedule, () => undefined, { timezone: 'UTC' })
    this.#plan(job, () => task.getNextRuns(1)[0]!.getTime())
  }

  /** Runs a job whenever it is due, by the clock of the system; once if it was due several times since. */
  #plan(job: CronJob, next: () => number): void {
    let running: Promise<void> | undefined
    let due = next()
    const begin = (): void => {
      running = this.#run(job).finally(() => {
        this.#running.delete(running!)
        running = undefined
      })
      this.#running.add(running)
    }
    const wake = (): void => {
      if (Date.now() >= due) {
        if (running) this.#log.warn({ job: job.name }, 'scheduled job was still running')
        else begin()
      }
      // from now on, whichever way the clock has jumped
      due = next()
      sleepOn()
    }
    const sleepOn = (): void => {
      this.#timers.set(job.name, setTimeout(wake, Math.min(Math.max(due - Date.now(), 1), longest)))
    }
    sleepOn()
  }

  async #run(job: CronJob): Promise<void> {
    const { name } = job
    const began = performance.now()
    try {
      if (!job.everywhere && !(await this.#leads(name))) {
        this.#lastSuccess.set(name, this.#now())
        return
      }
      await job.run(this.#stopping.signal)
      this.#runs.labels(name, 'done').inc()
      this.#lastSuccess.set(name, this.#now())
    } catch (error) {
      this.#runs.labels(name, 'failed').inc()
      this.#log.error({ job: name, err: error }, 'scheduled job failed')
    }
    this.#times.labels(name).set((performance.now() - began) / 1000)
  }

  #now(): number {
    return this.#clock.now() / 1000
  }

  /** Starts no more runs; resolves when the current ones are done. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    await Promise.all(this.#running)
  }
}

/** Milliseconds between two steps, in which other work can run. */
const pause = 5

/** Repeats a small step until it returns false or the signal aborts. */
export async function sweep(step: () => Promise<boolean>, signal?: AbortSignal): Promise<void> {
  for (;;) {
    if (signal?.aborted || !(await step())) return
    await sleep(pause)
  }
}
