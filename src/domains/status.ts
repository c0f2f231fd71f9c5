import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Database, sql } from '../store/database.ts'
import { type RecordFindings, toDnsRecord } from './check.ts'
import type { DomainRow } from './types.ts'
import type { DkimKeys } from './keys.ts'
import type { DnsRecord } from './model.ts'
import { type DomainSettings, recordsOf } from './records.ts'
import { zoneLine } from './zone.ts'

/** A record at its last check, with internal fields. */
interface RecordStatus extends DnsRecord {
  /** A DKIM key that signs nothing now. */
  idle: boolean
  /** The expected line of a zone file. */
  zone: string
}

/** The status of a domain of any account. */
export interface DomainStatusReport {
  name: string
  /** True if its mail is accepted. */
  receives: boolean
  records: RecordStatus[]
}

/** The most domains of a report, and of those read in one turn of the event loop, as their findings are long. */
const most = 1000
const batch = 20

/** The status of every domain that was checked; at most 1000. */
export async function statusOf(database: Database, keys: DkimKeys, settings: DomainSettings): Promise<DomainStatusReport[]> {
  const reports: DomainStatusReport[] = []
  for (let read = batch; read === batch && reports.length < most;) {
    const rows = await database.all<DomainRow>(
      sql`SELECT * FROM domains WHERE last_checked_at IS NOT NULL ORDER BY is_default DESC, seq LIMIT ${batch} OFFSET ${reports.length}`,
    )
    reports.push(...(await reportsOn(rows, { database, keys, settings })))
    read = rows.length
    await nextTurn()
  }
  return reports
}

async function reportsOn(
  rows: DomainRow[],
  { database, keys, settings }: { database: Database; keys: DkimKeys; settings: DomainSettings },
): Promise<DomainStatusReport[]> {
  const known = await keys.of(
    database,
    rows.map(({ id }) => id),
  )
  return rows.map(({ id, name, receives, findings }) => {
    const seen = JSON.parse(findings) as RecordFindings
    const records = recordsOf(name, known.get(id)!, settings).map((wanted) => ({
      ...toDnsRecord(wanted, seen),
      idle: wanted.purpose === 'dkim' && !wanted.required,
      zone: zoneLine(wanted),
    }))
    return { name, receives: receives === 1, records }
  })
}
