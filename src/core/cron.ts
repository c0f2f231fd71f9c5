import { schedule } from 'node-cron'
import type { Logger, ScheduledTask } from 'node-cron'
import type { Log } from './log.ts'

export interface Job {
  name: string
  /** Cron syntax, UTC; six fields when the first is seconds. */
  schedule: string
  /** The signal aborts when the box stops: who takes long ends then. */
  run(signal?: AbortSignal): Promise<void>
}

/** The box's scheduled work: one run of a job at a time; a failing run is logged and does not stop the next. */
export class Schedule {
  readonly #log: Log
  readonly #tasks: ScheduledTask[] = []
  readonly #running = new Set<Promise<void>>()
  readonly #stopping = new AbortController()

  constructor(log: Log) {
    this.#log = log
  }

  add(job: Job): void {
    const run = (): Promise<void> => {
      // started in a promise, so that what it throws at once is caught as well
      const running = Promise.resolve()
        .then(() => job.run(this.#stopping.signal))
        .catch((error: unknown) => this.#log.error({ job: job.name, err: error }, 'a scheduled job failed'))
        .finally(() => this.#running.delete(running))
      this.#running.add(running)
      return running
    }
    const logger = jobLog(this.#log.child({ job: job.name }))
    this.#tasks.push(schedule(job.schedule, run, { name: job.name, timezone: 'UTC', noOverlap: true, logger }))
  }

  /** No new runs; resolves when those in hand are done. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const task of this.#tasks.splice(0)) await task.destroy()
    await Promise.all(this.#running)
  }
}

/** The library's own remarks (a missed or overlapping run); without this they would go to standard output. */
function jobLog(log: Log): Logger {
  return {
    info: (message) => log.info(message),
    warn: (message) => log.warn(message),
    error: (message, error) => log.error({ err: error ?? message }, 'the schedule failed'),
    debug: (message) => log.debug({ err: message }, 'schedule'),
  }
}
