import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { type Database, sql } from '../store/database.ts'
import type { Buckets } from './rate.ts'

interface Deps {
  database: Database
  clock: Clock
  log: Log
  policies: readonly Buckets[]
}

/** What a box has used of one limit. */
interface Use {
  policy: string
  caller: string
  run_id: string
  used: number
  per_minute: number
}

interface Seen {
  used: number
  /** Milliseconds since the epoch. */
  at: number
}

/** Milliseconds between two exchanges. */
const pause = 1000

/** Milliseconds after which a use counts no more: its bucket is full again. */
const lifetime = 120_000

/** Milliseconds before the last exchange from which uses are read: the clocks of the boxes differ. */
const overlap = 15_000

/** Of these, one exchange also removes the uses that count no more. */
const exchangesToSweep = 60

/** The rate limits of several boxes on one database: once a second each tells the others what it has used of them. */
export class RateExchange {
  readonly #deps: Deps
  readonly #seen = new Map<string, Seen>()
  /** When others were last read, in milliseconds since the epoch; undefined before. */
  #read: number | undefined
  #exchanges = 0
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(deps: Deps) {
    this.#deps = deps
    for (const buckets of deps.policies) buckets.noteUses()
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#running = this.exchange()
        // the store logs that the server is away
        .catch((error: unknown) => this.#deps.log.debug({ err: error }, 'rates were not exchanged'))
        .finally(() => {
          if (!this.#stopped) this.start()
        })
    }, pause)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  async exchange(): Promise<void> {
    const now = this.#deps.clock.now()
    await this.#tell(now)
    await this.#hear(now)
    this.#exchanges += 1
    if (this.#exchanges % exchangesToSweep === 0) await this.#sweep(now)
  }

  /** Adds what this box has used since the last time. */
  async #tell(now: number): Promise<void> {
    const { database, policies } = this.#deps
    const taken = policies.map((buckets) => ({ buckets, uses: buckets.takeUses() })).filter(({ uses }) => uses.size > 0)
    const lines = taken.flatMap(({ buckets: { policy }, uses }) =>
      [...uses].map(([caller, { used, perMinute }]) => JSON.stringify({ policy, caller, used, perMinute })),
    )
    if (lines.length === 0) return
    try {
      await database.transaction((tx) =>
        tx.run(
          sql`INSERT INTO rate_uses (policy, caller, run_id, used, per_minute, used_at)
            SELECT json_extract(value, '$.policy'), json_extract(value, '$.caller'), ${database.run.id}, CAST(json_extract(value, '$.used') AS BIGINT),
              CAST(json_extract(value, '$.perMinute') AS BIGINT), CAST(${now} AS BIGINT) FROM json_each(${JSON.stringify(lines)}) WHERE 1 = 1
            ON CONFLICT (policy, caller, run_id) DO UPDATE SET per_minute = excluded.per_minute, used_at = excluded.used_at,
              used = CASE WHEN rate_uses.used_at <= ${now - lifetime} THEN excluded.used ELSE rate_uses.used + excluded.used END`,
        ),
      )
    } catch (error) {
      for (const { buckets, uses } of taken) buckets.returnUses(uses)
      throw error
    }
  }

  /** Counts what others have used since the last time. */
  async #hear(now: number): Promise<void> {
    const { database, policies } = this.#deps
    const since = Math.max(now - lifetime, (this.#read ?? -Infinity) - overlap)
    const rows = await database.all<Use>(
      sql`SELECT policy, caller, run_id, used, per_minute FROM rate_uses WHERE run_id <> ${database.run.id} AND used_at > ${since}`,
    )
    for (const { policy, caller, run_id, used, per_minute } of rows) {
      const key = JSON.stringify([policy, caller, run_id])
      const before = this.#seen.get(key)
      this.#seen.set(key, { used, at: before?.used === used ? before.at : now })
      // it began anew when it had counted no more
      const more = before === undefined || used < before.used ? used : used - before.used
      const buckets = policies.find((one) => one.policy === policy)
      // what was used before this box looked is not its own to count
      if (more > 0 && this.#read !== undefined) buckets?.spend(caller, more, per_minute)
    }
    this.#read = now
  }

  async #sweep(now: number): Promise<void> {
    for (const [key, { at }] of this.#seen) if (at <= now - lifetime) this.#seen.delete(key)
    await this.#deps.database.transaction((tx) => tx.run(sql`DELETE FROM rate_uses WHERE used_at <= ${now - lifetime}`))
  }
}
