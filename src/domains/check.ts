import { judge } from './judge.ts'
import type { DnsRecord } from './model.ts'
import { keyOf, type WantedRecord } from './records.ts'
import { type Bench, type Judged, Unanswered } from './verdict.ts'

/** What was last seen of a record, and of which value: of another it says nothing. */
export interface Finding extends Judged {
  value: string
  /** Whether the last look had no answer, so that this is from one before. */
  unanswered?: true
  /** When the DNS last answered; findings of earlier versions do not say. */
  seen_at?: string
}

/** By the key of the record. */
export type RecordFindings = Record<string, Finding>

/** What one look at the DNS came to. */
export interface Look {
  findings: RecordFindings
  /** `unknown` when a required record is neither known to be right, nor any known to be wrong: that changes nothing. */
  outcome: 'right' | 'wrong' | 'unknown'
}

/** Looks at every record once, all at the same time; one without an answer is Unanswered. */
export async function look(wanted: WantedRecord[], domain: string, bench: Bench): Promise<Map<string, Judged | Unanswered>> {
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

/** What is known now of the records: what was seen at `now`, and where there was no answer what was seen before. */
export function weigh(wanted: WantedRecord[], seen: Map<string, Judged | Unanswered>, before: RecordFindings, now: string): Look {
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

/** A record as the API shows it. */
export function toDnsRecord(wanted: WantedRecord, findings: RecordFindings): DnsRecord {
  const { purpose, required, type, name, value, priority, ttl } = wanted
  const kept = findings[keyOf(wanted)]
  const none: Finding = { value, status: 'missing', found: [], reason: 'It was not looked up yet.' }
  const { status, found, reason, unanswered = false, seen_at = null } = kept?.value === value ? kept : none
  const record = { purpose, required, type, name, value, ...(priority === undefined ? {} : { priority }), ttl }
  return { ...record, status, found, reason, unanswered, seen_at }
}

/** Another value, as after a change of the settings, is another question. */
function seenKey(record: WantedRecord): string {
  return `${keyOf(record)} ${record.value}`
}

function former(record: WantedRecord, trouble: Unanswered | undefined, before: Finding | undefined): Finding | undefined {
  const earlier = before?.value === record.value ? before : undefined
  if (!trouble) return earlier
  const { value } = record
  if (!earlier || (earlier.unanswered && earlier.found.length === 0)) {
    const reason = `${trouble.message} It will be asked again.`
    return { value, status: earlier?.status ?? 'missing', found: [], reason, unanswered: true }
  }
  const reason = `${trouble.message} It will be asked again; this is what it said before.`
  return { ...earlier, reason, unanswered: true }
}
