import type { Log } from '../core/log.ts'
import type { ParsedAddress } from '../mail/address.ts'
import type { ExaminedMessage } from '../mail/types.ts'
import type { SystemAddressHandler } from '../smtp/delivery-target.ts'
import type { DmarcReport, Report, TlsReport } from '../message/reports/reported.ts'
import type { Transaction } from '../store/database.ts'
import type { DomainReport } from './model.ts'
import type { DomainReports, NewReport } from './reports.ts'

/** The local parts of report addresses: they have no mailbox, and their mail is not stored as e-mail. */
const places: ReadonlySet<string> = new Set(['dmarc', 'tlsrpt'])

/**
 * Handles mail to `dmarc@` and `tlsrpt@` of every hosted domain. All of it is accepted, so that reporters get no bounce. A report that
 * cannot be parsed, is about another domain or has an unauthenticated sender is logged and dropped.
 */
export class ReportHandler implements SystemAddressHandler {
  readonly #reports: DomainReports
  readonly #log: Log

  constructor({ reports, log }: { reports: DomainReports; log: Log }) {
    this.#reports = reports
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
      const { session } = message.envelope
      tx.afterCommit(() => this.#log.info({ session, domain, flaw }, 'report on a domain discarded'))
      return
    }
    await this.#reports.store(tx, domain, kept, verdict.verified_domain)
  }
}

/** The part of a report that is about this domain. */
function reportOn(domain: string, report: Report | null): NewReport | undefined {
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

function headOf({ reporter, report_id, begins_at, ends_at }: DmarcReport | TlsReport): Omit<NewReport, 'kind' | 'data'> {
  return { reporter, report_id, begins_at, ends_at }
}

function dmarcData({ policy, rows, rows_left_out, pass, fail }: DmarcReport): DomainReport['data'] {
  return { policy, rows: rows.map((row) => ({ ...row })), ...(rows_left_out > 0 ? { rows_left_out } : {}), pass, fail }
}

function flawOf(report: Report | null): string {
  return report?.kind === 'dmarc' || report?.kind === 'tls' ? 'it is about another domain' : 'it is not a readable report'
}
