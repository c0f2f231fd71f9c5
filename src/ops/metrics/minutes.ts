import type { Basis } from '../../basis.ts'
import { day, iso, minute } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import { join, raw, sql } from '../../store/database.ts'
import { counted, type Counts, countsOf, difference, nothing, type Received } from './counters.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'log' | 'metrics' | 'space'> {
  received: () => Received | undefined
}

/** How long a minute is kept, in milliseconds. */
const retention = 7 * day

const deadline = 10_000

/** How the counts of several boxes become one row. All hear the same events, look at the same queue and database, and have disks of their own. */
const together = sql`(at) DO UPDATE SET ${join(
  counted.filter((name) => name !== 'events').map((name) => raw(`${name} = figures.${name} + excluded.${name}`)),
)}, ${join(
  ['events', 'queue_depth', 'oldest_due', 'database'].map((name) =>
    raw(
      `${name} = CASE WHEN figures.${name} > excluded.${name} THEN figures.${name} ELSE coalesce(excluded.${name}, figures.${name}) END`,
    ),
  ),
)}, disk_free = CASE WHEN figures.disk_free < excluded.disk_free THEN figures.disk_free ELSE excluded.disk_free END`

export class Minutes {
  readonly #deps: Deps
  /** The counts in the rows written since the start. */
  #stored: Counts = nothing
  #events = 0

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Counts an event of the log. */
  happened(): void {
    this.#events += 1
  }

  /** Writes the minute that just ended. */
  noteLast(): Promise<void> {
    // a timer may be a little early
    return this.#note(Math.floor((this.#deps.clock.now() + 1000) / minute) * minute - minute)
  }

  /** Writes the current minute when the box stops. */
  noteThis(): Promise<void> {
    return this.#note(Math.floor(this.#deps.clock.now() / minute) * minute)
  }

  /** A minute that has a row keeps it, and later counts go into the next; of several boxes each adds its own. */
  async #note(began: number): Promise<void> {
    const { metrics, received, log } = this.#deps
    const counts = await countsOf(metrics, received(), this.#events)
    try {
      if (await this.#write(began, difference(counts, this.#stored))) this.#stored = counts
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      // disk full or store failing: reported elsewhere, and the counts go into a later minute
      log.debug({ err: error }, 'metrics of a minute could not be written')
    }
  }

  async #write(began: number, counts: Counts): Promise<boolean> {
    const { database, space } = this.#deps
    const { depth, late } = await this.#queue()
    const free = await space.free()
    const size = await database.size()
    return database.transaction(async (tx) => {
      await tx.run(sql`DELETE FROM figures WHERE at < ${iso(began - retention)}`)
      const { changes } = await tx.run(
        sql`INSERT INTO figures (at, mail_in, mail_refused, mail_delivered, mail_failed, events, webhooks_done, webhooks_failed, api_calls,
            queue_depth, oldest_due, disk_free, database)
          VALUES (${iso(began)}, ${counts.mail_in}, ${counts.mail_refused}, ${counts.mail_delivered}, ${counts.mail_failed},
            ${counts.events}, ${counts.webhooks_done}, ${counts.webhooks_failed}, ${counts.api_calls}, ${depth}, ${late}, ${free}, ${size})
          ON CONFLICT ${database.several ? together : sql`DO NOTHING`}`,
      )
      return changes === 1
    })
  }

  async #queue(): Promise<{ depth: number | null; late: number | null }> {
    const { database, clock } = this.#deps
    const row = await database.get<{ running: number; some: number }>(
      sql`SELECT (SELECT count(*) FROM deliveries_queue WHERE state = 'running') AS running,
        EXISTS (SELECT 1 FROM deliveries_queue WHERE state = 'waiting') AS some`,
    )
    if (row!.some === 0) return { depth: row!.running, late: 0 }
    const now = clock.now()
    try {
      // the queue may be long: it is read off the event loop
      const [queue] = await database.slow<{ waiting: number; due: string | null }>(
        sql`SELECT count(*) AS waiting, min(CASE WHEN due_at <= ${iso(now)} THEN due_at END) AS due FROM deliveries_queue
          WHERE state = 'waiting'`,
        deadline,
      )
      const { waiting, due } = queue!
      return { depth: waiting + row!.running, late: due === null ? 0 : Math.round((now - Date.parse(due)) / 1000) }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return { depth: null, late: null }
    }
  }
}
