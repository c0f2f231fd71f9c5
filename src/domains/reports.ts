import { type Cursors, page } from '../store/page.ts'
import { type Clock, day, iso } from '../core/clock.ts'
import { sweep } from '../core/cron.ts'
import type { Caller } from '../core/scopes.ts'
import { type Page, picked } from '../core/shapes.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'
import type { Domains } from './domains.ts'
import { DomainReport, type ReportFilter } from './model.ts'

type ReportRow = Omit<DomainReport, 'data'> & { seq: number; data: string }

export type NewReport = Omit<DomainReport, 'received_at'>

/** The most reports stored for one domain, and the bytes of their data: strangers send them. */
const maxReports = 1000
const maxOctets = 8 * 1024 * 1024

/** The least bytes that a report counts in the share of its sender: small ones reach the first limit before the second. */
const minOctets = Math.floor(maxOctets / maxReports)

/** How far the reports of a domain may exceed both limits until they are trimmed, which costs more than a report. */
const slack = 1.1

/** Milliseconds that a report is kept. */
const maxAge = 365 * day

/** Rows removed in one transaction. */
const batch = 100

/** DMARC and TLS reports on mail in the name of hosted domains. */
export class DomainReports {
  readonly #database: Database
  readonly #cursors: Cursors
  readonly #domains: Domains
  readonly #clock: Clock

  constructor(deps: { database: Database; clock: Clock; cursors: Cursors; domains: Domains }) {
    this.#database = deps.database
    this.#clock = deps.clock
    this.#cursors = deps.cursors
    this.#domains = deps.domains
  }

  async list(caller: Caller, id: string, { kind, ...paging }: ReportFilter): Promise<Page<DomainReport>> {
    await this.#domains.row(caller, id)
    return page<ReportRow, DomainReport>(this.#database, this.#cursors, paging, {
      name: `domain reports ${id} ${kind ?? ''}`,
      from: sql`domain_reports`,
      account: caller.account_id,
      where: sql`domain_id = ${id}`,
      filters: kind === undefined ? [] : [sql`kind = ${kind}`],
      octets: sql`octet_length(data)`,
      present: (row) => picked(DomainReport, { ...row, data: JSON.parse(row.data) as DomainReport['data'] }),
    })
  }

  /** Stores a report on a hosted domain; `verified` is the domain that sent it, by a DMARC pass. */
  async store(tx: Transaction, name: string, report: NewReport, verified: string | null): Promise<void> {
    const domain = await tx.get<{ id: string }>(sql`SELECT id FROM domains WHERE name = ${name} AND receives = 1`)
    if (!domain) return
    const { kind, reporter, report_id, begins_at, ends_at } = report
    const data = JSON.stringify({ ...report.data, verified_domain: verified })
    const sender = verified ?? ''
    // anybody can give any name and id: a report is stored beside those of other senders, and replaces none
    const { changes } = await tx.run(
      sql`INSERT INTO domain_reports (domain_id, kind, reporter, report_id, sender, site, begins_at, ends_at, received_at, data) VALUES
        (${domain.id}, ${kind}, ${reporter}, ${report_id}, ${sender}, ${siteOf(sender)}, ${begins_at}, ${ends_at}, ${iso(this.#clock.now())},
        ${data}) ON CONFLICT DO NOTHING`,
    )
    if (changes > 0 && (await isFarBeyond(tx, domain.id))) await this.#trim(tx, domain.id)
  }

  /** Removes the reports of every domain that are too old or too many. */
  async forget(signal?: AbortSignal): Promise<void> {
    let after = ''
    const step = async (): Promise<boolean> => {
      const trimmed = await this.#database.transaction(async (tx) => {
        const next = await tx.get<{ id: string | null }>(
          sql`SELECT min(domain_id) AS id FROM domain_reports WHERE domain_id > ${after}`,
        )
        return next?.id ? { id: next.id, removed: await this.#trim(tx, next.id) } : undefined
      })
      if (trimmed && trimmed.removed < batch) after = trimmed.id
      return trimmed !== undefined
    }
    await sweep(step, signal)
  }

  /**
   * Removes reports beyond the limits: unverified ones first, then the oldest of the site with most, and in a site of the domain with most.
   * Returns how many it removed: at most a batch.
   */
  async #trim(tx: Transaction, domainId: string): Promise<number> {
    const { changes } = await tx.run(
      sql`DELETE FROM domain_reports WHERE seq IN (
        SELECT seq FROM (
          SELECT seq, received_at, row_number() OVER kept AS place, sum(octets) OVER kept AS octets FROM (
            SELECT *, sum(cost) OVER (PARTITION BY site ORDER BY share_of_sender, seq DESC ROWS UNBOUNDED PRECEDING) AS share FROM (
              SELECT *, sum(cost) OVER (PARTITION BY sender ORDER BY seq DESC ROWS UNBOUNDED PRECEDING) AS share_of_sender FROM (
                SELECT seq, received_at, sender, site, octet_length(data) AS octets,
                  CASE WHEN octet_length(data) > ${minOctets} THEN octet_length(data) ELSE ${minOctets} END AS cost
                FROM domain_reports WHERE domain_id = ${domainId}
              ) AS sized
            ) AS shared
          ) AS placed WINDOW kept AS (ORDER BY sender = '', share, seq DESC ROWS UNBOUNDED PRECEDING)
        ) AS counted WHERE place > ${maxReports} OR octets > ${maxOctets} OR received_at < ${iso(this.#clock.now() - maxAge)}
        ORDER BY place DESC LIMIT ${batch})`,
    )
    return changes
  }
}

async function isFarBeyond(tx: Transaction, domainId: string): Promise<boolean> {
  const kept = await tx.get<{ reports: number; octets: number }>(
    sql`SELECT count(*) AS reports, sum(octet_length(data)) AS octets FROM domain_reports WHERE domain_id = ${domainId}`,
  )
  return kept!.reports >= slack * maxReports || kept!.octets >= slack * maxOctets
}

/** The last two labels of a domain: its owner has all names below it. */
function siteOf(domain: string): string {
  return domain.split('.').slice(-2).join('.')
}
