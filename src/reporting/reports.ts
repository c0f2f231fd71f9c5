import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Basis } from '../basis.ts'
import { day, hour, iso } from '../core/clock.ts'
import { sweep } from '../core/cron.ts'
import type { Queue } from '../queue/queue.ts'
import type { FreshInquiry } from '../mailauth/inquire.ts'
import type { PublishedPolicy } from '../mail/model.ts'
import { sql, type Sql, type Transaction } from '../store/database.ts'
import type { Space } from '../store/space.ts'
import type { ReportLoad } from './courier.ts'
import { dayOf, type Kind, type ReportSubject, uniqueId } from './days.ts'
import { destinationsOf, hostOf, type ReportDestination } from './destinations.ts'
import type { DmarcRecord } from './dmarc-result.ts'
import { dmarcXml } from './dmarc-xml.ts'
import { reportMail } from './message.ts'
import { tlsJson, type TlsRecord } from './tls-json.ts'

export interface ReportSettings {
  dmarc: boolean
  tls: boolean
  organization: string
  contact: string
  /** The box's own domain, the sender of reports. */
  domain: string
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'log' | 'version'> {
  queue: Queue
  space: Pick<Space, 'low'>
  settings: () => ReportSettings
  /** Why nothing can be sent, as a sentence; undefined when it can. */
  obstacle: () => string | undefined
  inquire: () => FreshInquiry
  isOurs: (domain: string) => boolean
  sign: (domain: string, raw: Buffer) => Promise<string>
}

interface ReportRow extends ReportSubject {
  policy: string
  dropped: number
}

interface OutgoingReport {
  content: Buffer
  /** True if its destination authorized the reports. */
  agreed: boolean
  load: ReportLoad
}

const compress = promisify(gzip)

/** The most reports of one kind in one run, those made in parallel (a slow DNS delays few others), and rows deleted in one transaction. */
const maxOfRun = 100
const maxAtOnce = 10
const batchSize = 500

/**
 * The most reports that a host gets within a day without authorization. TLS reports need none (RFC 8460 7), and an attacker can have many
 * domains whose `rua` names a victim, or whose MX is the victim's.
 */
const maxUnagreed = 100

/** Delay of the next attempt after a DNS failure, and time after its day for which a report is still sent, in milliseconds. */
const again = hour
const lifetime = 2 * day

/** The local part of the sender of reports and target of their bounces: no mailbox, and mail to it causes no replies. */
const senders: Record<Kind, string> = { dmarc: 'dmarc', tls: 'tlsrpt' }

/** Sends the counts of a finished day, each report once. */
export class ReportSender {
  readonly #deps: Deps
  #obstacle: string | undefined

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Queues the reports that are due; none while the disk is nearly full. */
  async send(signal?: AbortSignal): Promise<void> {
    const { database, clock, log, settings, obstacle, space } = this.#deps
    const kinds = (['dmarc', 'tls'] as const).filter((kind) => settings()[kind])
    const why = kinds.length === 0 ? undefined : obstacle()
    if (why !== undefined && why !== this.#obstacle) log.warn({ why }, 'reports are enabled but cannot be sent')
    this.#obstacle = why
    if (why !== undefined) return
    for (const kind of kinds) {
      const rows = await database.all<ReportRow>(
        sql`SELECT kind, day, domain, policy, dropped FROM outbound_reports WHERE kind = ${kind} AND done_at IS NULL
          AND due_at <= ${iso(clock.now())} ORDER BY due_at LIMIT ${maxOfRun}`,
      )
      for (let at = 0; at < rows.length; at += maxAtOnce) {
        if (signal?.aborted || space.low()) return
        await Promise.all(rows.slice(at, at + maxAtOnce).map((row) => this.#report(row)))
      }
    }
  }

  /** Deletes expired counts, those of a kind that is off, and unrequested ones. */
  async clear(signal?: AbortSignal): Promise<void> {
    const { clock, settings } = this.#deps
    const before = dayOf(clock.now() - lifetime)
    for (const kind of ['dmarc', 'tls'] as const) {
      const which = settings()[kind] ? sql`kind = ${kind} AND day < ${before}` : sql`kind = ${kind}`
      await this.#remove(sql`outbound_report_counts`, sql`kind, day, domain, key`, which, signal)
      await this.#remove(sql`outbound_reports`, sql`kind, day, domain`, which, signal)
    }
    const now = clock.now()
    await this.#remove(sql`outbound_report_messages`, sql`id`, sql`created_at < ${iso(now - lifetime)}`, signal)
    await this.#remove(sql`outbound_report_refusals`, sql`destination`, sql`until < ${iso(now)}`, signal)
  }

  #remove(table: Sql, key: Sql, which: Sql, signal?: AbortSignal): Promise<void> {
    return sweep(async () => {
      const { changes } = await this.#deps.database.transaction((tx) =>
        tx.run(sql`DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${which} LIMIT ${batchSize})`),
      )
      return changes === batchSize
    }, signal)
  }

  async #report(row: ReportRow): Promise<void> {
    const { database, clock, log } = this.#deps
    const { kind, day: of, domain } = row
    try {
      const queuedEmails = await this.#queuedEmails(row, await this.#destinations(row))
      await database.transaction((tx) => this.#enqueue(tx, row, queuedEmails))
      if (queuedEmails.length === 0)
        log.debug({ kind, domain, day: of }, 'domain requests no report, or no permitted destination')
    } catch (error) {
      log.info({ kind, domain, day: of, err: error }, 'report could not be created; retrying in an hour')
      const due = iso(clock.now() + again)
      await database.transaction((tx) => tx.run(sql`UPDATE outbound_reports SET due_at = ${due} WHERE ${one(row)}`))
    }
  }

  /** The destinations of a report, except our own domains and those that refused one recently. */
  async #destinations({ kind, domain }: ReportSubject): Promise<ReportDestination[]> {
    const { database, clock, inquire, isOurs } = this.#deps
    const inquiry = inquire()
    try {
      const found = await destinationsOf(kind, domain, inquiry)
      const open: ReportDestination[] = []
      for (const destination of found) {
        if (isOurs(hostOf(destination))) continue
        const refusal = await database.get(
          sql`SELECT 1 FROM outbound_report_refusals WHERE destination = ${destination.to} AND until > ${iso(clock.now())}`,
        )
        if (!refusal) open.push(destination)
      }
      return open
    } finally {
      inquiry.close()
    }
  }

  async #queuedEmails(row: ReportRow, destinations: ReportDestination[]): Promise<OutgoingReport[]> {
    if (destinations.length === 0) return []
    const { database, settings, clock, sign, log } = this.#deps
    const { domain: own, contact } = settings()
    const { kind, day: of, domain } = row
    const rows = (
      await database.all<{ record: string; count: number }>(
        sql`SELECT record, count FROM outbound_report_counts WHERE ${one(row)} ORDER BY count DESC, key`,
      )
    ).map(({ record, count }) => ({ record: JSON.parse(record) as unknown, count }))
    if (rows.length === 0) return []
    const unique = uniqueId(row, own)
    const report_id = `${of}.${unique}@${own}`
    const begin = Date.parse(of)
    const end = begin + day - 1000
    const content = await compress(this.#text(row, { rows, report_id, begin, end }))
    const from = `${senders[kind]}@${own}`
    const extension = kind === 'dmarc' ? 'xml.gz' : 'json.gz'
    const mail = {
      kind,
      domain,
      submitter: own,
      from,
      reply_to: contact,
      report_id,
      date: new Date(clock.now()).toUTCString().replace('GMT', '+0000'),
      filename: `${own}!${domain}!${begin / 1000}!${end / 1000}!${unique}.${extension}`,
      content,
      text: `This is the ${kind === 'dmarc' ? 'DMARC aggregate' : 'TLS'} report of ${own} on ${domain} for ${of} (UTC).`,
    }
    const queuedEmails: OutgoingReport[] = []
    for (const [index, { to, limit, agreed }] of destinations.entries()) {
      const load = { id: randomUUID(), kind, day: of, domain, from, to }
      const raw = reportMail({ ...mail, to, message_id: `<${of}.${unique}.${index}@${own}>` })
      if (raw.length > limit) {
        log.info({ kind, domain, day: of, to, octets: raw.length, limit }, 'report is larger than its destination accepts')
        continue
      }
      queuedEmails.push({
        load,
        agreed,
        content: to.startsWith('https://') ? content : Buffer.concat([Buffer.from(await sign(own, raw)), raw]),
      })
    }
    return queuedEmails
  }

  #text(
    { kind, policy, dropped }: ReportRow,
    { rows, ...range }: { rows: { record: unknown; count: number }[]; report_id: string; begin: number; end: number },
  ): string {
    const { version, settings } = this.#deps
    const { organization, contact } = settings()
    const common = { ...range, organization, contact }
    if (kind === 'tls') return tlsJson({ ...common, rows: rows as { record: TlsRecord; count: number }[] })
    return dmarcXml({
      ...common,
      generator: `Pillarbox ${version}`,
      policy: JSON.parse(policy) as PublishedPolicy,
      dropped,
      rows: rows as { record: DmarcRecord; count: number }[],
    })
  }

  /** In one transaction, so that a restart sends a report exactly once. */
  async #enqueue(tx: Transaction, row: ReportSubject, queuedEmails: OutgoingReport[]): Promise<void> {
    const { clock, queue, log } = this.#deps
    const now = iso(clock.now())
    for (const { load, content, agreed } of queuedEmails) {
      const lane = hostOf(load)
      if (!agreed && (await this.#hasEnough(tx, lane))) {
        const { kind, domain, day: of, to } = load
        log.debug({ kind, domain, day: of, to, most: maxUnagreed }, 'daily limit of reports to a host reached')
        continue
      }
      await tx.run(sql`INSERT INTO outbound_report_messages (id, content, created_at) VALUES (${load.id}, ${content}, ${now})`)
      await queue.enqueue(tx, { kind: 'report', lane, load })
    }
    await tx.run(sql`DELETE FROM outbound_report_counts WHERE ${one(row)}`)
    await tx.run(sql`UPDATE outbound_reports SET done_at = ${now}, rows = 0 WHERE ${one(row)}`)
  }

  /** Counted from the queue, which keeps finished deliveries for over a day: so a restart changes nothing. */
  async #hasEnough(tx: Transaction, host: string): Promise<boolean> {
    const last = await tx.get<{ created_at: string }>(
      sql`SELECT created_at FROM deliveries_queue WHERE kind = 'report' AND lane = ${host} ORDER BY seq DESC LIMIT 1 OFFSET ${maxUnagreed - 1}`,
    )
    return last !== undefined && last.created_at > iso(this.#deps.clock.now() - day)
  }
}

function one({ kind, day: of, domain }: ReportSubject): Sql {
  return sql`kind = ${kind} AND day = ${of} AND domain = ${domain}`
}
