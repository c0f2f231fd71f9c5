import type { ReportHeader } from './dmarc-xml.ts'
import type { TlsFailure, TlsPolicy } from '../outbound/transport/tls-result.ts'

/** A row of a TLS report; successful without a failure. */
export interface TlsRecord {
  policy: TlsPolicy
  failure: (TlsFailure & { sending_ip: string | null; receiving_ip: string | null; receiving_mx: string | null }) | null
}

type Rows = { record: TlsRecord; count: number }[]

/** A report on TLS sessions (RFC 8460 4.4). */
export function tlsJson({ organization, contact, report_id, begin, end, rows }: ReportHeader & { rows: Rows }): string {
  const policies = new Map<string, Rows>()
  for (const row of rows) {
    const key = JSON.stringify(row.record.policy)
    policies.set(key, [...(policies.get(key) ?? []), row])
  }
  return JSON.stringify({
    'organization-name': organization,
    'date-range': { 'start-datetime': time(begin), 'end-datetime': time(end) },
    'contact-info': contact,
    'report-id': report_id,
    policies: [...policies.values()].map(policyOf),
  })
}

function policyOf(rows: Rows): object {
  const { type, domain, strings, mx_hosts } = rows[0]!.record.policy
  const failed = rows.filter(({ record }) => record.failure !== null)
  const sum = (some: Rows): number => some.reduce((total, { count }) => total + count, 0)
  return {
    policy: {
      'policy-type': type,
      ...(strings.length > 0 ? { 'policy-string': strings } : {}),
      'policy-domain': domain,
      ...(mx_hosts.length > 0 ? { 'mx-host': mx_hosts } : {}),
    },
    summary: {
      'total-successful-session-count': sum(rows) - sum(failed),
      'total-failure-session-count': sum(failed),
    },
    ...(failed.length > 0 ? { 'failure-details': failed.map(failureOf) } : {}),
  }
}

function failureOf({ record, count }: Rows[number]): object {
  const { type, reason, sending_ip, receiving_ip, receiving_mx } = record.failure!
  return {
    'result-type': type,
    ...(sending_ip === null ? {} : { 'sending-mta-ip': sending_ip }),
    ...(receiving_mx === null ? {} : { 'receiving-mx-hostname': receiving_mx }),
    ...(receiving_ip === null ? {} : { 'receiving-ip': receiving_ip }),
    'failed-session-count': count,
    ...(reason === null ? {} : { 'failure-reason-code': reason }),
  }
}

/** `2016-04-01T00:00:00Z` */
function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace('.000Z', 'Z')
}
