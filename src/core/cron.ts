import { performance } from 'node:perf_hooks'
import { type Logger, schedule, type ScheduledTask } from 'node-cron'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import type { Counter, Gauge, Metrics } from './metrics.ts'
import { setTimeout as sleep } from 'node:timers/promises'

export interface CronJob {
  name: string
  /** Cron syntax, UTC; six fields when the first is seconds. */
  schedule: string
  /** The signal aborts when the box stops; a long run must end then. */
  run(signal?: AbortSignal): Promise<void>
}

export interface ScheduleTest {
  idle?: boolean
}

/** The scheduled jobs of the box. Runs of one job do not overlap. A failed run is logged and does not prevent the next one. */
export class Schedule {
  readonly #log: Log
  readonly #tasks: ScheduledTask[] = []
  readonly #running = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  readonly #clock: Clock
  readonly #idle: boolean
  readonly #runs: Counter<'task' | 'result'>
  readonly #times: Gauge<'task'>
  /** The time each job last succeeded, in seconds since the Unix epoch. */
  readonly #lastSuccess = new Map<string, number>()

  /** With `idle`, used by tests, no job runs on its schedule. */
  constructor(log: Log, clock: Clock, metrics: Metrics, { idle = false }: ScheduleTest = {}) {
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
    const run = (): Promise<void> => {
      const running = this.#run(job).finally(() => this.#running.delete(running))
      this.#running.add(running)
      return running
    }
    this.#runs.labels(job.name, 'done').inc(0)
    this.#runs.labels(job.name, 'failed').inc(0)
    this.#lastSuccess.set(job.name, this.#now())
    if (this.#idle) return
    const logger = jobLog(this.#log.child({ job: job.name }))
    this.#tasks.push(schedule(job.schedule, run, { name: job.name, timezone: 'UTC', noOverlap: true, logger }))
  }

  async #run(job: CronJob): Promise<void> {
    const { name } = job
    const began = performance.now()
    try {
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
    for (const task of this.#tasks.splice(0)) await task.destroy()
    await Promise.all(this.#running)
  }
}

/** Passes on messages of the library (a missed or overlapping run), which would otherwise go to standard output. */
function jobLog(log: Log): Logger {
  return {
    info: (message) => log.info({ remark: message }, 'message of the scheduler'),
    warn: (message) => log.warn({ remark: message }, 'scheduled job ran late, or was still running'),
    error: (message, error) => log.error({ err: error ?? message }, 'scheduler failed'),
    debug: (message) => log.debug({ err: message }, 'schedule'),
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
