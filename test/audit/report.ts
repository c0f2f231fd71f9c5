import { ChainCheck, type ChainPlace, type ChainReport, type HashedRow, hashedColumns } from '../../src/audit/chain.ts'
import { verifyAuditOf } from '../../src/audit/verify.ts'
import { isOnServer, openStore } from '../support/open-store.ts'

/** Checks every row of the audit log of a box; `verifyAuditOf` reads files only. */
export function reportOf(file: string): ChainReport {
  if (!isOnServer(file)) return verifyAuditOf(file)
  using database = openStore(file)
  const ends = database.prepare('SELECT * FROM audit_chain').get()!
  const place = (name: string): ChainPlace => ({ seq: ends[`${name}_seq`], hash: Buffer.from(ends[`${name}_hash`]) })
  const check = new ChainCheck(place('anchor'))
  for (const row of database.prepare('SELECT * FROM audit ORDER BY seq').all()) {
    const bytes = hashedColumns.map((name) => [name, row[name] === null ? null : Buffer.from(String(row[name]))])
    check.add(row['seq'], Object.fromEntries(bytes) as HashedRow, row['hash'])
  }
  return check.finish(place('head'))
}
