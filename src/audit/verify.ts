import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { ChainCheck, type ChainPlace, type ChainReport, type HashedRow, hashedColumns } from './chain.ts'

/** The triggers that keep rows from being changed. */
export const triggers = [
  'audit_appended',
  'audit_chain_anchor',
  'audit_chain_head',
  'audit_chain_kept',
  'audit_chain_unique',
  'audit_head',
  'audit_kept',
  'audit_unchanged',
]

interface Chain {
  anchor: ChainPlace
  head: ChainPlace
}

/** The last row of the audit log in a database; undefined for a database from before there was one. */
export function auditHead(database: DatabaseSync): ChainPlace | undefined {
  return hasAudit(database) ? chainOf(database)?.head : undefined
}

/** Checks every row of the audit log in a database; undefined for a database from before there was one. */
export function verifyAudit(database: DatabaseSync): ChainReport | undefined {
  if (!hasAudit(database)) return undefined
  const chain = chainOf(database)
  const check = new ChainCheck(chain?.anchor ?? { seq: 0, hash: Buffer.alloc(32) })
  const present = new Set(
    database
      .prepare(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
      .all()
      .map(({ name }) => String(name)),
  )
  const gone = triggers.filter((name) => !present.has(name))
  // bytes, as a text is decoded with a substitute for what is no UTF-8
  const columns = hashedColumns.map((name) => `CAST(${name} AS BLOB) AS ${name}`).join(', ')
  const query = database.prepare(
    `SELECT ${columns}, seq AS place, hash, ${hashedColumns.map((name) => `typeof(${name})`).join(` || ' ' || `)} AS types FROM audit ORDER BY audit.seq`,
  )
  for (const found of query.iterate()) {
    const { place, hash, types, ...row } = found as unknown as HashedRow & { place: number; hash: unknown; types: string }
    const sound = hash instanceof Uint8Array && types.split(' ').every((type, at) => allowed(at).includes(type))
    check.add(place, row, sound ? hash : Buffer.alloc(0))
  }
  checkTriggers(check, gone, chain !== undefined)
  return check.finish(chain?.head ?? { seq: 0, hash: Buffer.alloc(0) })
}

/** Checks the audit log of a box, running or not. Throws an Error when there is none. */
export function verifyAuditOf(file: string, known?: ChainPlace): ChainReport {
  if (!existsSync(file)) throw new Error(`There is no box: ${file} is missing.`)
  using database = new DatabaseSync(file, { readOnly: true, timeout: 30_000 })
  // all rows of one moment
  database.exec('BEGIN')
  const report = verifyAudit(database)
  if (!report) throw new Error(`${file} has no audit log yet: it was last opened by an earlier version.`)
  const row = known && database.prepare('SELECT hash FROM audit WHERE seq = ?').get(known.seq)
  return checkKnown(report, chainOf(database), row?.['hash'], known)
}

/** Adds what keeps rows from being changed and is missing. */
export function checkTriggers(check: ChainCheck, missing: readonly string[], hasEnds: boolean): void {
  if (missing.length > 0) check.fault(0, `is open to changes: the triggers ${missing.join(', ')} are missing`)
  if (!hasEnds) check.fault(0, 'cannot be checked: the ends of the chain are missing or damaged')
}

/** Adds how the log differs from one that had the row `known` once, which has the hash `stored` now. */
export function checkKnown(
  report: ChainReport,
  chain: Chain | undefined,
  stored: unknown,
  known: ChainPlace | undefined,
): ChainReport {
  if (known === undefined || known.seq === 0 || (chain && chain.anchor.seq > known.seq)) return report
  const { seq, hash } = known
  const found = stored ?? (chain?.anchor.seq === seq ? chain.anchor.hash : undefined)
  if (found instanceof Uint8Array && hash.equals(found)) return report
  const what = found === undefined ? 'was in the backup, and is missing' : 'is another one than in the backup'
  return { ...report, valid: false, faults: [...report.faults, { seq, what }] }
}

function hasAudit(database: DatabaseSync): boolean {
  return database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'audit' AND type = 'table'`).get() !== undefined
}

/** The ends of the chain; undefined when they are missing, or are no numbers and hashes. */
function chainOf(database: DatabaseSync): Chain | undefined {
  const row = database.prepare('SELECT anchor_seq, anchor_hash, head_seq, head_hash FROM audit_chain WHERE id = 1').get()
  if (!row) return undefined
  const places = ['anchor', 'head'].flatMap((name): ChainPlace[] => {
    const [seq, hash] = [row[`${name}_seq`], row[`${name}_hash`]]
    return typeof seq === 'number' && hash instanceof Uint8Array ? [{ seq, hash: Buffer.from(hash) }] : []
  })
  const [anchor, head] = places
  return anchor && head && { anchor, head }
}

/** The types of a column, by its position. */
function allowed(position: number): string[] {
  const name = hashedColumns[position]!
  if (name === 'seq' || name === 'count') return ['integer']
  return ['client', 'address', 'target', 'identity_id'].includes(name) ? ['text', 'null'] : ['text']
}
