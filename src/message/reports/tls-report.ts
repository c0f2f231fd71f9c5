import { type JsonBounds, parseForeign } from '../../core/json.ts'
import type { TlsPolicyReport, TlsReport } from './reported.ts'
import { addressIn, ByteBudget, domainIn, shortLine, wordIn } from './values.ts'

const maxEntries = 100

/** The report of a large sender has some hundred failures with some ten fields each for each domain. */
const reportBounds: JsonBounds = { depth: 32, tokens: 200_000 }

/** A TLS report (RFC 8460 4.4); null for other text, or without sender, id or policies. */
export function tlsReport(json: string): TlsReport | null {
  const report = parsed(json)
  const reporter = shortLine(text(report['organization-name']))
  const report_id = shortLine(text(report['report-id']))
  const budget = new ByteBudget()
  const policies = list(report['policies']).flatMap((one) => policyOf(record(one), budget) ?? [])
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

/** The policy with those of its failures that there is room for; null when there is none for itself. */
function policyOf(entry: Json, budget: ByteBudget): TlsPolicyReport | null {
  const policy = record(entry['policy'])
  const summary = record(entry['summary'])
  const domain = domainIn(text(policy['policy-domain']))
  if (domain === null) return null
  const whole: TlsPolicyReport = {
    type: wordIn(text(policy['policy-type'])) ?? 'unknown',
    domain,
    successful: countOf(summary['total-successful-session-count']),
    failed: countOf(summary['total-failure-session-count']),
    failures: [],
  }
  if (!budget.takes(whole)) return null
  for (const one of list(entry['failure-details'])) {
    const failure = failureOf(record(one))
    if (!budget.takes(failure)) break
    whole.failures.push(failure)
  }
  return whole
}

function failureOf(failure: Json): TlsPolicyReport['failures'][number] {
  return {
    result: wordIn(text(failure['result-type'])) ?? 'unknown',
    count: countOf(failure['failed-session-count']),
    sending_ip: addressIn(text(failure['sending-mta-ip'])),
    receiving_mx: domainIn(text(failure['receiving-mx-hostname'])),
    reason: shortLine(text(failure['failure-reason-code'])),
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

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
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
