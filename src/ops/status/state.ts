import type { Basis } from '../../basis.ts'
import { day, iso } from '../../core/clock.ts'
import { join, sql } from '../../store/database.ts'
import { databaseSize } from '../../store/space.ts'
import type { Backlog } from './backlog.ts'
import type { Status } from './model.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'space' | 'version'> {
  backlog: Backlog
  directory: string
  /** The components that are failing. */
  failing: () => Promise<string[]>
}

type Counted = Status['last_24_hours']

/** The counter of each event type. */
const counted: Record<string, keyof Counted> = {
  'email.received': 'emails_received',
  'email.sent': 'emails_delivered',
  'email.delivered': 'emails_delivered',
  'email.bounced': 'emails_bounced',
  'email.failed': 'emails_failed',
  'sms.received': 'sms_received',
  'sms.sent': 'sms_sent',
  'sms.failed': 'sms_failed',
}

const nothing: Counted = {
  emails_received: 0,
  emails_delivered: 0,
  emails_bounced: 0,
  emails_failed: 0,
  sms_received: 0,
  sms_sent: 0,
  sms_failed: 0,
}

/** The timeout of a query in milliseconds. */
const deadline = 10_000

/** A summary of the status of the box. */
export class BoxState {
  readonly #deps: Deps
  readonly #started: number

  constructor(deps: Deps) {
    this.#deps = deps
    this.#started = deps.clock.now()
  }

  async status(): Promise<Status> {
    const { database, clock, space, backlog, version, directory, failing } = this.#deps
    const now = clock.now()
    const identities = await database.get<{ n: number }>(sql`SELECT count(*) AS n FROM identities WHERE status <> 'deleted'`)
    return {
      version,
      started_at: iso(this.#started),
      uptime: Math.max(0, Math.round((now - this.#started) / 1000)),
      failing: await failing(),
      identities: identities!.n,
      queue: (await backlog.summary()).kinds,
      last_24_hours: await this.#counts(iso(now - day)),
      disk: { free: await space.free(), database: await databaseSize(directory), low: space.low(), min_free: space.minimum },
    }
  }

  async #counts(since: string): Promise<Counted> {
    const rows = await this.#deps.database.slow<{ type: string; n: number }>(
      sql`SELECT type, count(*) AS n FROM events
        WHERE seq > coalesce((SELECT seq FROM events WHERE created_at < ${since} ORDER BY seq DESC LIMIT 1), 0)
        AND type IN (${join(Object.keys(counted))}) GROUP BY type`,
      deadline,
    )
    const counts = { ...nothing }
    for (const { type, n } of rows) counts[counted[type]!] += n
    return counts
  }
}
