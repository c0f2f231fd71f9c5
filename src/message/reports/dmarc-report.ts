import { readXml } from '../markup.ts'
import type { DmarcReport, DmarcRow } from './reported.ts'
import { addressIn, ByteBudget, domainIn, shortLine, wordIn } from './values.ts'

const maxRows = 500

/** Characters of an element's text that are read. */
const maxText = 1000

/** Fields of the policy that are kept, by their names in the report. */
const policyFields = ['p', 'sp', 'np', 'pct', 'adkim', 'aspf', 'fo', 'testing', 'discovery_method']

/** The elements whose text is read, by their paths: once in a report, or once in each row. */
const headPaths = new Set([
  '/feedback/report_metadata/org_name',
  '/feedback/report_metadata/report_id',
  '/feedback/report_metadata/date_range/begin',
  '/feedback/report_metadata/date_range/end',
  '/feedback/policy_published/domain',
  ...policyFields.map((field) => `/feedback/policy_published/${field}`),
])
const rowPath = '/feedback/record'
const rowPaths = new Set([
  `${rowPath}/row/source_ip`,
  `${rowPath}/row/count`,
  `${rowPath}/row/policy_evaluated/disposition`,
  `${rowPath}/row/policy_evaluated/dkim`,
  `${rowPath}/row/policy_evaluated/spf`,
  `${rowPath}/identifiers/header_from`,
])

/** An element that is read, or that has such elements in it: those by their names. */
interface KnownElement {
  path: string
  within: Map<string, KnownElement>
}

const root: KnownElement = { path: '', within: new Map() }
for (const path of [...headPaths, ...rowPaths]) {
  let element = root
  for (const name of path.split('/').slice(1)) {
    const inner = element.within.get(name) ?? { path: `${element.path}/${name}`, within: new Map() }
    element.within.set(name, inner)
    element = inner
  }
}

/** What was done with mail (RFC 9990 ActionDispositionType). */
const dispositions = new Set(['none', 'pass', 'quarantine', 'reject'])
/** Results of DMARC, and those of SPF and DKIM (RFC 8601 2.7), which some servers write in their place. */
const results = new Set(['none', 'pass', 'fail', 'softfail', 'neutral', 'policy', 'temperror', 'permerror'])

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
  /** The open elements; undefined for those that are not read. */
  readonly #open: (KnownElement | undefined)[] = []
  readonly #head = new Map<string, string>()
  readonly #row = new Map<string, string>()
  readonly #rows: DmarcRow[] = []
  readonly #budget = new ByteBudget()
  #text = ''
  #leftOut = 0
  #pass = 0
  #fail = 0

  open(name: string): void {
    const around = this.#open.length === 0 ? root : this.#open.at(-1)
    const element = around?.within.get(name)
    this.#open.push(element)
    this.#text = ''
    if (element?.path === rowPath) this.#row.clear()
  }

  text(text: string): void {
    if (this.#open.at(-1) !== undefined) this.#text += text.slice(0, maxText - this.#text.length)
  }

  close(): void {
    const path = this.#open.pop()?.path
    const text = this.#text
    this.#text = ''
    if (path === undefined) return
    const values = headPaths.has(path) ? this.#head : rowPaths.has(path) ? this.#row : undefined
    // the first one counts
    const value = values?.has(path) === false ? shortLine(text) : null
    if (value !== null) values?.set(path, value)
    if (path === rowPath) this.#endRow()
  }

  report(): DmarcReport | null {
    const of = (path: string): string | undefined => this.#head.get(`/feedback/${path}`)
    const domain = domainIn(of('policy_published/domain'))
    const reporter = of('report_metadata/org_name')
    const report_id = of('report_metadata/report_id')
    if (domain === null || reporter === undefined || report_id === undefined) return null
    const policy = policyFields.flatMap((field) => {
      const value = wordIn(of(`policy_published/${field}`))
      return value === null ? [] : [[field, value]]
    })
    return {
      kind: 'dmarc',
      reporter,
      report_id,
      domain,
      begins_at: timeOf(of('report_metadata/date_range/begin')),
      ends_at: timeOf(of('report_metadata/date_range/end')),
      policy: Object.fromEntries(policy),
      rows: this.#rows,
      rows_left_out: this.#leftOut,
      pass: this.#pass,
      fail: this.#fail,
    }
  }

  #endRow(): void {
    const of = (path: string): string | undefined => this.#row.get(`${rowPath}/${path}`)
    const source_ip = addressIn(of('row/source_ip'))
    if (source_ip === null) return
    const count = countOf(of('row/count'))
    const dkim = oneOf(results, of('row/policy_evaluated/dkim'))
    const spf = oneOf(results, of('row/policy_evaluated/spf'))
    if (dkim === 'pass' || spf === 'pass') this.#pass += count
    else this.#fail += count
    if (this.#leftOut > 0 || this.#rows.length === maxRows) {
      this.#leftOut++
      return
    }
    const disposition = oneOf(dispositions, of('row/policy_evaluated/disposition'))
    const row = { source_ip, count, disposition, dkim, spf, header_from: domainIn(of('identifiers/header_from')) ?? 'none' }
    if (this.#budget.takes(row)) this.#rows.push(row)
    else this.#leftOut++
  }
}

function oneOf(words: ReadonlySet<string>, text: string | undefined): string {
  const word = text?.toLowerCase() ?? 'none'
  return words.has(word) ? word : 'none'
}

function countOf(text: string | undefined): number {
  return /^\d{1,9}$/.test(text ?? '') ? Number(text) : 0
}

/** A time from seconds since the epoch, possibly with a fraction. */
function timeOf(text: string | undefined): string | null {
  const seconds = /^\d{1,10}(?:\.\d{1,6})?$/.test(text ?? '') ? Number(text) : Number.NaN
  return Number.isNaN(seconds) ? null : new Date(Math.floor(seconds) * 1000).toISOString()
}
