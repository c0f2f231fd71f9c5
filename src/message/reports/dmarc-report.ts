import { lineOf } from './field-groups.ts'
import { readXml } from '../markup.ts'
import type { DmarcReport, DmarcRow } from './reported.ts'

const maxRows = 500

/** Fields of the policy that are kept, by their names in the report. */
const policyFields = new Set(['p', 'sp', 'np', 'pct', 'adkim', 'aspf', 'fo', 'testing', 'discovery_method'])

/** A DMARC aggregate report (RFC 9990 appendix A; RFC 7489 appendix C); null for other text, or without domain, sender or id. */
export function dmarcReport(xml: string): DmarcReport | null {
  if (!/<(?:[\w.-]+:)?feedback[\s>]/i.test(xml.slice(0, 10_000))) return null
  const reader = new DmarcReportReader()
  try {
    readXml(xml, reader)
  } catch {
    return null
  }
  return reader.report()
}

class DmarcReportReader {
  readonly #path: string[] = []
  readonly #once = new Map<string, string>()
  readonly #policy: Record<string, string> = {}
  readonly #rows: DmarcRow[] = []
  #row: Map<string, string> | undefined
  #text = ''
  #leftOut = 0
  #pass = 0
  #fail = 0

  open(name: string): void {
    this.#path.push(name)
    this.#text = ''
    if (this.#path.join('/') === 'feedback/record') this.#row = new Map()
  }

  text(text: string): void {
    if (this.#text.length < 1000) this.#text += text
  }

  close(): void {
    const path = this.#path.join('/')
    const name = this.#path.pop() ?? ''
    const value = lineOf(this.#text)?.slice(0, 255) ?? ''
    this.#text = ''
    if (path === 'feedback/record') this.#endRow()
    else if (value === '') return
    else if (this.#row) keepFirst(this.#row, path.slice('feedback/record/'.length), value)
    else if (path.startsWith('feedback/policy_published/') && policyFields.has(name)) this.#policy[name] ??= value
    else keepFirst(this.#once, path, value)
  }

  report(): DmarcReport | null {
    const domain = this.#once.get('feedback/policy_published/domain')?.toLowerCase()
    const reporter = this.#once.get('feedback/report_metadata/org_name')
    const report_id = this.#once.get('feedback/report_metadata/report_id')
    if (!domain || !reporter || !report_id) return null
    return {
      kind: 'dmarc',
      reporter,
      report_id,
      domain: domain.replace(/\.$/, ''),
      begins_at: timeOf(this.#once.get('feedback/report_metadata/date_range/begin')),
      ends_at: timeOf(this.#once.get('feedback/report_metadata/date_range/end')),
      policy: this.#policy,
      rows: this.#rows,
      rows_left_out: this.#leftOut,
      pass: this.#pass,
      fail: this.#fail,
    }
  }

  #endRow(): void {
    const row = this.#row
    this.#row = undefined
    const source_ip = row?.get('row/source_ip')
    if (!row || source_ip === undefined) return
    const of = (path: string): string => row.get(path)?.toLowerCase() ?? 'none'
    const entry = {
      source_ip,
      count: countOf(row.get('row/count')),
      disposition: of('row/policy_evaluated/disposition'),
      dkim: of('row/policy_evaluated/dkim'),
      spf: of('row/policy_evaluated/spf'),
      header_from: of('identifiers/header_from'),
    }
    if (entry.dkim === 'pass' || entry.spf === 'pass') this.#pass += entry.count
    else this.#fail += entry.count
    if (this.#rows.length < maxRows) this.#rows.push(entry)
    else this.#leftOut++
  }
}

/** Keeps at most 100 values; few paths are used. */
function keepFirst(values: Map<string, string>, path: string, value: string): void {
  if (!values.has(path) && values.size < 100) values.set(path, value)
}

function countOf(text: string | undefined): number {
  return /^\d{1,9}$/.test(text ?? '') ? Number(text) : 0
}

/** A time from seconds since the epoch, possibly with a fraction. */
function timeOf(text: string | undefined): string | null {
  const seconds = /^\d{1,10}(?:\.\d{1,6})?$/.test(text ?? '') ? Number(text) : Number.NaN
  return Number.isNaN(seconds) ? null : new Date(Math.floor(seconds) * 1000).toISOString()
}
