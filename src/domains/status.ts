import { type Database, sql } from '../store/database.ts'
import { type RecordFindings, toDnsRecord } from './check.ts'
import type { DomainRow } from './types.ts'
import type { DkimKeys } from './keys.ts'
import type { DnsRecord } from './model.ts'
import { recordsOf } from './records.ts'
import type { DomainSettings } from './settings.ts'
import { zoneLine } from './zone.ts'

/** A record of one of our domains as it was last seen, with what its owner is not shown. */
export interface RecordStatus extends DnsRecord {
  /** A DKIM key that signs nothing now. */
  idle: boolean
  /** The line of a zone file that should be there. */
  zone: string
}

/** A domain of anybody's on this box. */
export interface DomainStatusReport {
  name: string
  /** Whether mail for it is taken. */
  receives: boolean
  records: RecordStatus[]
}

/** How every domain that was ever looked at stands; at most 1000. */
export async function statusOf(database: Database, keys: DkimKeys, settings: DomainSettings): Promise<DomainStatusReport[]> {
  const rows = await database.all<DomainRow>(
    sql`SELECT * FROM domains WHERE last_checked_at IS NOT NULL ORDER BY is_default DESC, seq LIMIT 1000`,
  )
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
