import type { Basis } from '../../basis.ts'
import { day, iso } from '../../core/clock.ts'
import { join, sql } from '../../store/database.ts'
import type { SendingRights } from '../../domains/sending.ts'
import type { Backlog } from './backlog.ts'
import type { Status } from './model.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'space' | 'version'> {
  backlog: Backlog
  failing: () => Promise<string[]>
  domain: string
  sendingRights: () => SendingRights
}

type Counted = Status['last_24_hours']

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

const nothing = Object.fromEntries(Object.values(counted).map((name) => [name, 0])) as Counted

const deadline = 10_000

export class BoxState {
  readonly #deps: Deps
  readonly #started: number

  constructor(deps: Deps) {
    this.#deps = deps
    this.#started = deps.clock.now()
  }

  async status(): Promise<Status> {
    const { database, clock, space, backlog, version, failing, domain, sendingRights } = this.#deps
    const { outside, explanation, fix } = sendingRights()
    const now = clock.now()
    const identities = await database.get<{ n: number }>(sql`SELECT count(*) AS n FROM identities WHERE status <> 'deleted'`)
    return {
      version,
      started_at: iso(this.#started),
      uptime: Math.max(0, Math.round((now - this.#started) / 1000)),
      failing: await failing(),
      sending: { domain, can_send_outside: outside, explanation, fix },
      identities: identities!.n,
      queue: (await backlog.summary()).kinds,
      last_24_hours: await this.#counts(iso(now - day)),
      disk: { free: await space.free(), database: await database.size(), low: space.low(), min_free: space.minimum },
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
