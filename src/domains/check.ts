import { judge } from './judge.ts'
import type { DnsRecord } from './model.ts'
import { keyOf, type WantedRecord } from './records.ts'
import { type CheckContext, type Judged, Unanswered } from './verdict.ts'

/** The last result for a record, with the value that was checked: it does not apply to another value. */
interface Finding extends Judged {
  value: string
  /** True if the last check got no answer, so that this result is older. */
  unanswered?: true
  /** The time of the last DNS answer; absent in results of earlier versions. */
  seen_at?: string
}

/** By the key of the record. */
export type RecordFindings = Record<string, Finding>

/** The result of one DNS check of a domain. */
export interface CheckResult {
  findings: RecordFindings
  /** `unknown` when no required record is known to be wrong but not all are known to be right: the status stays. */
  outcome: 'right' | 'wrong' | 'unknown'
}

/** Checks every record once, in parallel; a record without an answer is Unanswered. */
export async function checkRecords(
  wanted: WantedRecord[],
  domain: string,
  bench: CheckContext,
): Promise<Map<string, Judged | Unanswered>> {
  const seen = await Promise.all(
    wanted.map(async (record): Promise<[string, Judged | Unanswered]> => {
      try {
        return [seenKey(record), await judge(record, domain, bench)]
      } catch (error) {
        if (error instanceof Unanswered) return [seenKey(record), error]
        throw error
      }
    }),
  )
  return new Map(seen)
}

/** Merges the results: those seen at `now`, and for unanswered records the earlier ones. */
export function weigh(
  wanted: WantedRecord[],
  seen: Map<string, Judged | Unanswered>,
  before: RecordFindings,
  now: string,
): CheckResult {
  const findings: RecordFindings = {}
  const required: (Judged['status'] | 'unknown')[] = []
  for (const record of wanted) {
    const judged = seen.get(seenKey(record))
    const known = judged !== undefined && !(judged instanceof Unanswered)
    const finding = known ? { ...judged, value: record.value, seen_at: now } : former(record, judged, before[keyOf(record)])
    if (finding) findings[keyOf(record)] = finding
    if (record.required) required.push(known ? judged.status : 'unknown')
  }
  const wrong = required.some((status) => status === 'missing' || status === 'invalid')
  return { findings, outcome: wrong ? 'wrong' : required.includes('unknown') ? 'unknown' : 'right' }
}

/** A record in the API. */
export function toDnsRecord(wanted: WantedRecord, findings: RecordFindings): DnsRecord {
  const { purpose, required, type, name, value, priority, ttl } = wanted
  const kept = findings[keyOf(wanted)]
  const none: Finding = { value, status: 'missing', found: [], reason: 'It has not been looked up yet.' }
  const { status, found, reason, unanswered = false, seen_at = null } = kept?.value === value ? kept : none
  const record = { purpose, required, type, name, value, ...(priority === undefined ? {} : { priority }), ttl }
  return { ...record, status, found, reason, unanswered, seen_at }
}

/** Includes the value, as a changed setting makes a different check. */
function seenKey(record: WantedRecord): string {
  return `${keyOf(record)} ${record.value}`
}

function former(record: WantedRecord, trouble: Unanswered | undefined, before: Finding | undefined): Finding | undefined {
  const earlier = before?.value === record.value ? before : undefined
  if (!trouble) return earlier
  const { value } = record
  if (!earlier || (earlier.unanswered && earlier.found.length === 0)) {
    const reason = `${trouble.message} The lookup will be repeated.`
    return { value, status: earlier?.status ?? 'missing', found: [], reason, unanswered: true }
  }
  const reason = `${trouble.message} The lookup will be repeated; this is the previous result.`
  return { ...earlier, reason, unanswered: true }
}
