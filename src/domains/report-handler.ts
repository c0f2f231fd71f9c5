import { type Clock, iso } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { ParsedAddress } from '../mail/address.ts'
import type { ExaminedMessage } from '../mail/types.ts'
import type { SystemAddressHandler } from '../smtp/delivery-target.ts'
import type { DmarcReport, Report, TlsReport } from '../message/reports/reported.ts'
import { sql, type Transaction } from '../store/database.ts'
import type { DomainReport } from './model.ts'

/** The most reports stored for one domain. */
const maxReports = 1000

/** The local parts of report addresses: they have no mailbox, and their mail is not stored as e-mail. */
const places: ReadonlySet<string> = new Set(['dmarc', 'tlsrpt'])

/**
 * Handles mail to `dmarc@` and `tlsrpt@` of every hosted domain. All of it is accepted, so that reporters get no bounce. A report that
 * cannot be parsed, is about another domain or has an unauthenticated sender is logged and dropped.
 */
export class ReportHandler implements SystemAddressHandler {
  readonly #clock: Clock
  readonly #log: Log

  constructor({ clock, log }: { clock: Clock; log: Log }) {
    this.#clock = clock
    this.#log = log
  }

  classify({ local }: ParsedAddress): ReturnType<SystemAddressHandler['classify']> {
    return places.has(local) ? 'accepted' : 'unknown'
  }

  async receive(tx: Transaction, { domain }: ParsedAddress, message: ExaminedMessage): Promise<void> {
    const { parsed, verdict } = message.examined
    const kept = reportOn(domain, parsed.report)
    const flaw = kept ? (verdict.authentication.dmarc.result === 'fail' ? 'its sender is forged' : null) : flawOf(parsed.report)
    if (!kept || flaw) {
      this.#log.info({ session: message.envelope.session, domain, flaw }, 'report on a domain discarded')
      return
    }
    await this.#store(tx, domain, kept, verdict.verified_domain)
  }

  async #store(tx: Transaction, name: string, report: Kept, verified: string | null): Promise<void> {
    const domain = await tx.get<{ id: string }>(sql`SELECT id FROM domains WHERE name = ${name} AND receives = 1`)
    if (!domain) return
    const { kind, reporter, report_id, begins_at, ends_at } = report
    const data = JSON.stringify({ ...report.data, verified_domain: verified })
    // an unauthenticated report does not block the authentic one
    await tx.run(
      sql`INSERT INTO domain_reports (domain_id, kind, reporter, report_id, begins_at, ends_at, verified, received_at, data) VALUES
        (${domain.id}, ${kind}, ${reporter}, ${report_id}, ${begins_at}, ${ends_at}, ${verified === null ? 0 : 1}, ${iso(this.#clock.now())},
        ${data}) ON CONFLICT DO UPDATE SET begins_at = excluded.begins_at, ends_at = excluded.ends_at, verified = excluded.verified,
        received_at = excluded.received_at, data = excluded.data WHERE excluded.verified > domain_reports.verified`,
    )
    const row = await tx.get<{ count: number }>(sql`SELECT count(*) AS count FROM domain_reports WHERE domain_id = ${domain.id}`)
    if (row!.count <= maxReports) return
    await tx.run(
      sql`DELETE FROM domain_reports WHERE seq IN (SELECT seq FROM domain_reports WHERE domain_id = ${domain.id}
        ORDER BY verified, seq LIMIT ${row!.count - maxReports})`,
    )
  }
}

type Kept = Omit<DomainReport, 'received_at'>

/** The part of a report that is about this domain. */
function reportOn(domain: string, report: Report | null): Kept | undefined {
  if (report?.kind === 'dmarc' && report.domain === domain) return { ...headOf(report), kind: 'dmarc', data: dmarcData(report) }
  if (report?.kind !== 'tls') return undefined
  const policies = report.policies.filter((policy) => policy.domain === domain)
  return policies.length === 0
    ? undefined
    : {
        ...headOf(report),
        kind: 'tls',
        data: { policies: policies.map((policy) => ({ ...policy, failures: policy.failures.map((one) => ({ ...one })) })) },
      }
}

function headOf({ reporter, report_id, begins_at, ends_at }: DmarcReport | TlsReport): Omit<Kept, 'kind' | 'data'> {
  return { reporter, report_id, begins_at, ends_at }
}

function dmarcData({ policy, rows, rows_left_out, pass, fail }: DmarcReport): DomainReport['data'] {
  return { policy, rows: rows.map((row) => ({ ...row })), ...(rows_left_out > 0 ? { rows_left_out } : {}), pass, fail }
}

function flawOf(report: Report | null): string {
  return report?.kind === 'dmarc' || report?.kind === 'tls' ? 'it is about another domain' : 'it is not a readable report'
}
