import type { LoginRow } from '../../accounts/sign-in/logins.ts'
import type { Basis } from '../../basis.ts'
import { hour, iso, minute } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import { scopesOfRole } from '../../core/scopes.ts'
import type { Domains } from '../../domains/domains.ts'
import { compose } from '../../outbound/compose/compose.ts'
import { domainOf } from '../../outbound/compose/recipients.ts'
import type { SystemMail, SystemMailResult } from '../../outbound/transport/outbound-transport.ts'
import { type Courier, TemporaryFailure, PermanentFailure } from '../../queue/courier.ts'
import type { Queue } from '../../queue/queue.ts'
import { sql } from '../../store/database.ts'
import type { Holds, StoredHold } from '../holds.ts'
import type { Hold } from '../model.ts'
import { type DigestEntry, digestMail } from './digest-mail.ts'
import { callerOf, type HoldLinks } from './hold-links.ts'

interface Load {
  person_id: string
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'log' | 'publicUrl'> {
  queue: Queue
  holds: Holds
  links: HoldLinks
  domains: Pick<Domains, 'receives' | 'requireSending'>
  /** The domain that digests come from. */
  domain: string
  /** `policy.digest` */
  isOn: () => boolean
  sign: (domain: string, raw: Buffer) => Promise<string>
  transmit: (mail: SystemMail, signal: AbortSignal) => Promise<SystemMailResult>
}

/** The most holds in one digest. */
const maxEntries = 20

/** Milliseconds between two digests of one person. */
const interval = hour

/** Digests of open holds by mail, to the people who may decide them: when there is a new one, and at most one an hour. */
export class Digests implements Courier<Load> {
  readonly kind = 'hold-digest'
  readonly schedule = [0, 5 * minute, 30 * minute, 2 * hour]
  readonly jitter = 0.2
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Enqueues what is due. */
  async enqueue(): Promise<void> {
    const { database, clock, queue, isOn } = this.#deps
    if (!isOn()) return
    const now = clock.now()
    await database.transaction(async (tx) => {
      const accounts = await tx.all<{ account_id: string; newest: number }>(
        sql`SELECT account_id, max(seq) AS newest FROM holds WHERE status = 'open' AND ended = 0 GROUP BY account_id`,
      )
      for (const { account_id, newest } of accounts) {
        // a time further ahead is of a clock that was
        const justSent = sql`sent_at > ${iso(now - interval)} AND sent_at < ${iso(now + interval)}`
        const people = await tx.all<LoginRow>(
          sql`SELECT logins.* FROM logins LEFT JOIN hold_digests ON person_id = logins.id WHERE account_id = ${account_id} AND role IN ('owner', 'approver')
            AND (sent_at IS NULL OR (up_to < ${newest} AND NOT (${justSent})))`,
        )
        for (const { id, email } of people) {
          await tx.run(
            sql`INSERT INTO hold_digests (person_id, sent_at, up_to) VALUES (${id}, ${iso(now)}, ${newest})
              ON CONFLICT (person_id) DO UPDATE SET sent_at = excluded.sent_at, up_to = excluded.up_to`,
          )
          const load: Load = { person_id: id }
          await queue.enqueue(tx, { kind: this.kind, lane: domainOf(email), account_id, load })
        }
      }
    })
  }

  /** Composed at each attempt, so that no link waits in the queue. */
  async deliver({ person_id }: Load, _attempt: number, signal: AbortSignal): Promise<string> {
    const { database, domains, domain, sign, transmit, log, isOn } = this.#deps
    const person = await database.get<LoginRow>(sql`SELECT * FROM logins WHERE id = ${person_id}`)
    if (!isOn() || !person || !scopesOfRole[person.role].has('holds:decide')) return 'nobody to send it to any more'
    if (domains.receives(domainOf(person.email))) {
      // a key that reads mail of this box could decide by its links
      log.warn({ person: person_id }, 'no digest of holds is sent to an address of this box')
      throw new PermanentFailure('it would go to an address of this box, whose mail keys can read')
    }
    requireMaySend(domains, domain, person.email)
    const open = sql`FROM holds WHERE account_id = ${person.account_id} AND status = 'open' AND ended = 0`
    const all = await database.get<{ n: number }>(sql`SELECT count(*) AS n ${open}`)
    const entries = await this.#entries(
      person,
      await database.all<StoredHold>(sql`SELECT * ${open} ORDER BY seq DESC LIMIT ${maxEntries}`),
    )
    if (entries.length === 0) return 'nothing is held any more'
    const raw = await this.#compose(person.email, entries, Math.max(0, all!.n - maxEntries))
    signal.throwIfAborted()
    const mail = {
      from: `no-reply@${domain}`,
      to: person.email,
      raw: Buffer.concat([Buffer.from(await sign(domain, raw)), raw]),
      despite_tls: false,
    }
    const { outcome, response, mx } = await transmit(mail, signal)
    const answer = mx === null ? response : `${mx}: ${response}`
    if (outcome === 'delivered') return answer
    throw outcome === 'refused' ? new PermanentFailure(answer) : new TemporaryFailure(answer)
  }

  async describe(_reader: unknown, { person_id }: Load): Promise<Record<string, string>> {
    return { person: person_id }
  }

  async #entries({ id, account_id, role }: LoginRow, rows: readonly StoredHold[]): Promise<DigestEntry[]> {
    const { database, holds, links, publicUrl } = this.#deps
    const caller = callerOf({ account_id, person_id: id, role }, { ip: '', user_agent: '' })
    const open: { row: StoredHold; hold: Hold }[] = []
    for (const row of rows) {
      const hold = await holds.get(caller, row.id)
      if (hold.status === 'open') open.push({ row, hold })
    }
    return database.transaction(async (tx) => {
      const entries: DigestEntry[] = []
      for (const { row, hold } of open) {
        const token = await links.create(tx, id, row)
        entries.push({ hold, url: `${publicUrl()}/decide#token=${token}` })
      }
      return entries
    })
  }

  async #compose(address: string, entries: readonly DigestEntry[], more: number): Promise<Buffer> {
    const { clock, domain, publicUrl } = this.#deps
    const draft = {
      ...digestMail(entries, more, publicUrl()),
      from: `no-reply@${domain}`,
      addressees: [{ field: 'to' as const, address: { name: '', address } }],
      reply_to: [],
      headers: [],
      attachments: [],
      labels: [],
      send_at: null,
      auto_submitted: 'auto-generated' as const,
      require_tls: false,
      in_reply_to: null,
      references: [],
      thread_id: null,
    }
    return (await compose(draft, { name: 'Pillarbox', at: clock.now() })).whole
  }
}

/** Throws TemporaryFailure while the domain of the box may not send. */
function requireMaySend(domains: Deps['domains'], from: string, to: string): void {
  try {
    domains.requireSending(from, domainOf(to))
  } catch (error) {
    throw error instanceof Fault ? new TemporaryFailure(error.message) : error
  }
}
