import { PostgresSource, beginSnapshot } from '../store/copy/postgres-side.ts'
import type { Row } from '../store/copy/side.ts'
import type { PostgresTarget } from '../store/postgres/target.ts'
import { openCopySource } from '../store/postgres/prepare.ts'
import { ChainCheck, type ChainPlace, type ChainReport, type HashedRow, hashedColumns } from './chain.ts'
import { checkKnown, checkTriggers, triggers } from './verify.ts'

/** The triggers that keep the tables from being emptied at once, which only PostgreSQL can do. */
const emptied = ['audit_chain_emptied', 'audit_emptied']

const integers: readonly string[] = ['seq', 'count']

/** The rows as they are hashed, with their hash. */
const table = {
  name: 'audit',
  columns: [
    ...hashedColumns.map((name) => ({ name, type: integers.includes(name) ? ('INTEGER' as const) : ('TEXT' as const) })),
    { name: 'hash', type: 'BLOB' as const },
  ],
  key: ['seq'],
  refers: false,
}

/** Checks the audit log of a box on PostgreSQL, running or not. Throws an Error when there is none. */
export async function verifyAuditOn(target: PostgresTarget, known?: ChainPlace): Promise<ChainReport> {
  const connection = await openCopySource(target, false)
  try {
    // all rows of one moment
    await beginSnapshot(connection)
    const present = await connection.query(`SELECT tgname AS name FROM pg_trigger WHERE tgenabled IN ('O', 'A')
      AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname IN ('audit', 'audit_chain'))`)
    const { rows: ends } = await connection.query(
      'SELECT anchor_seq, anchor_hash, head_seq, head_hash FROM audit_chain WHERE id = 1',
    )
    const chain = chainOf(ends[0])
    const check = new ChainCheck(chain?.anchor ?? { seq: 0, hash: Buffer.alloc(32) })
    let found: Uint8Array | undefined
    for await (const batch of new PostgresSource(connection).rows(table, 0)) {
      for (const row of batch) {
        const [seq, hash] = [row[0] as number, row.at(-1) as Uint8Array]
        if (seq === known?.seq) found = hash
        check.add(seq, hashed(row), hash)
      }
    }
    const names = new Set(present.rows.map(({ name }: { name: string }) => name))
    checkTriggers(
      check,
      [...triggers, ...emptied].filter((name) => !names.has(name)),
      chain !== undefined,
    )
    return checkKnown(check.finish(chain?.head ?? { seq: 0, hash: Buffer.alloc(32) }), chain, found, known)
  } finally {
    await connection.end().catch(() => {})
  }
}

/** The bytes of each column, numbers in decimal. */
function hashed(row: Row): HashedRow {
  const bytes = hashedColumns.map((name, at) => {
    const value = row[at]!
    return [name, value === null ? null : Buffer.from(String(value))]
  })
  return Object.fromEntries(bytes) as HashedRow
}

function chainOf(row: unknown): { anchor: ChainPlace; head: ChainPlace } | undefined {
  if (row === undefined) return undefined
  const { anchor_seq, anchor_hash, head_seq, head_hash } = row as Record<'anchor_seq' | 'head_seq', number> &
    Record<'anchor_hash' | 'head_hash', Uint8Array>
  return { anchor: { seq: anchor_seq, hash: Buffer.from(anchor_hash) }, head: { seq: head_seq, hash: Buffer.from(head_hash) } }
}
