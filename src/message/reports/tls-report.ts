import { type JsonBounds, parseForeign } from '../../core/json.ts'
import { lineOf } from './field-groups.ts'
import type { TlsPolicyReport, TlsReport } from './reported.ts'

const maxEntries = 100

/** The report of a large sender has some hundred failures with some ten fields each for each domain. */
const reportBounds: JsonBounds = { depth: 32, tokens: 200_000 }

/** A TLS report (RFC 8460 4.4); null for other text, or without sender, id or policies. */
export function tlsReport(json: string): TlsReport | null {
  const report = parsed(json)
  const reporter = line(report['organization-name'])
  const report_id = line(report['report-id'])
  const policies = list(report['policies']).flatMap((one) => policyOf(record(one)) ?? [])
  if (reporter === null || report_id === null || policies.length === 0) return null
  const range = record(report['date-range'])
  return {
    kind: 'tls',
    reporter,
    report_id,
    begins_at: timeOf(range['start-datetime']),
    ends_at: timeOf(range['end-datetime']),
    policies,
  }
}

function policyOf(entry: Json): TlsPolicyReport | null {
  const policy = record(entry['policy'])
  const summary = record(entry['summary'])
  const domain = line(policy['policy-domain'])?.toLowerCase().replace(/\.$/, '')
  if (!domain) return null
  return {
    type: line(policy['policy-type']) ?? 'unknown',
    domain,
    successful: countOf(summary['total-successful-session-count']),
    failed: countOf(summary['total-failure-session-count']),
    failures: list(entry['failure-details']).map((one) => {
      const failure = record(one)
      return {
        result: line(failure['result-type']) ?? 'unknown',
        count: countOf(failure['failed-session-count']),
        sending_ip: line(failure['sending-mta-ip']),
        receiving_mx: line(failure['receiving-mx-hostname']),
        reason: line(failure['failure-reason-code']),
      }
    }),
  }
}

type Json = Record<string, unknown>

function parsed(json: string): Json {
  try {
    return record(parseForeign(json, 'The report', reportBounds))
  } catch {
    return {}
  }
}

function record(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
}

/** At most a hundred entries; empty for anything but a list. */
function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, maxEntries) : []
}

function line(value: unknown): string | null {
  return typeof value === 'string' ? (lineOf(value)?.slice(0, 255) ?? null) : null
}

/** A count; some servers write numbers as strings. */
function countOf(value: unknown): number {
  const count = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return Number.isSafeInteger(count) && (count as number) >= 0 ? (count as number) : 0
}

function timeOf(value: unknown): string | null {
  const time = typeof value === 'string' && /^\d{4}-\d\d-\d\d(?:T|$)/.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}
