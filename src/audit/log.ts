import type { AuditEntry } from '../core/audit.ts'
import { type Clock, iso } from '../core/clock.ts'
import { sweep } from '../core/cron.ts'
import type { Page } from '../core/shapes.ts'
import { type Database, raw, sql, type Sql, type Transaction } from '../store/database.ts'
import { type Ages, oldRows } from '../store/old-rows.ts'
import { type Cursors, page } from '../store/page.ts'
import { type HashedRow, hashedColumns, hashOf } from './chain.ts'
import type { AuditFilter, AuditRow } from './model.ts'

/** Longest stored texts, in characters, and JSON of the detail. */
const longest = { text: 200, detail: 1000 }

/** Rows deleted in one transaction, so that it does not block the event loop. */
const batchSize = 200

type Row = Omit<AuditRow, 'detail' | 'hash'> & { detail: string; hash: Uint8Array }

/** The audit log of the box: one chain of rows. */
export class AuditLog {
  readonly #database: Database
  readonly #clock: Clock
  readonly #cursors: Cursors

  constructor({ database, clock, cursors }: { database: Database; clock: Clock; cursors: Cursors }) {
    this.#database = database
    this.#clock = clock
    this.#cursors = cursors
  }

  /** Appends a row in the transaction of what it records. */
  async append(tx: Transaction, entry: AuditEntry, count = 1): Promise<void> {
    const head = (await tx.get<{ seq: number; hash: Uint8Array }>(
      sql`SELECT head_seq AS seq, head_hash AS hash FROM audit_chain WHERE id = 1`,
    ))!
    const row = rowOf(entry, { seq: head.seq + 1, at: iso(this.#clock.now()), count })
    await tx.run(
      sql`INSERT INTO audit (seq, account_id, at, actor, client, address, action, target, identity_id, count, detail, hash)
        VALUES (${row.seq}, ${row.account_id}, ${row.at}, ${row.actor}, ${row.client}, ${row.address}, ${row.action}, ${row.target},
        ${row.identity_id}, ${row.count}, ${row.detail}, ${hashOf(head.hash, bytesOf(row))})`,
    )
  }

  /** Newest first: the rows of one account, or of the whole box. */
  list(account: string | undefined, filter: AuditFilter): Promise<Page<AuditRow>> {
    const { actor, action, identity_id, after, before, ...paging } = filter
    return page<Row, AuditRow>(this.#database, this.#cursors, paging, {
      name: `audit ${JSON.stringify([account ?? null, actor, action, identity_id, after, before])}`,
      from: sql`audit`,
      account,
      where: account === undefined ? sql`seq > 0` : sql`account_id = ${account}`,
      filters: [
        ...(actor === undefined ? [] : [sql`actor = ${actor}`]),
        ...(action === undefined ? [] : [ofAction(action)]),
        ...(identity_id === undefined ? [] : [sql`identity_id = ${identity_id}`]),
        ...(after === undefined ? [] : [sql`at >= ${after}`]),
        ...(before === undefined ? [] : [sql`at < ${before}`]),
      ],
      present: ({ detail, hash, ...row }) => ({
        ...row,
        detail: JSON.parse(detail) as AuditRow['detail'],
        hash: Buffer.from(hash).toString('hex'),
      }),
    })
  }

  /** Deletes the oldest rows, up to the first that is not old; the chain then begins after them. Returns how many. */
  async prune(ages: Ages, signal?: AbortSignal): Promise<number> {
    let count = 0
    await sweep(async () => {
      const deleted = await this.#database.transaction(async (tx) => {
        const rows = await tx.all<{ seq: number; at: string }>(
          sql`SELECT seq, at FROM audit WHERE seq > 0 ORDER BY seq LIMIT ${batchSize}`,
        )
        const old = await oldRows(tx, rows, ages, (seq) => sql`SELECT seq, at FROM audit WHERE seq > ${seq}`)
        const last = old.at(-1)
        if (!last) return 0
        await tx.run(
          sql`UPDATE audit_chain SET anchor_seq = ${last.seq}, anchor_hash = (SELECT hash FROM audit WHERE seq = ${last.seq})`,
        )
        await tx.run(sql`DELETE FROM audit WHERE seq <= ${last.seq}`)
        return old.length
      })
      count += deleted
      return deleted === batchSize
    }, signal)
    return count
  }
}

function ofAction(action: string): Sql {
  if (!action.endsWith('.*')) return sql`action = ${action}`
  const subject = action.slice(0, -1)
  return sql`substr(action, 1, ${raw(String(subject.length))}) = ${subject}`
}

type NewRow = Omit<Row, 'hash'>

function rowOf(entry: AuditEntry, { seq, at, count }: Pick<NewRow, 'seq' | 'at' | 'count'>): NewRow {
  const { account_id, actor, client, address, action, target, identity_id } = entry
  const detail = JSON.stringify(entry.detail)
  return {
    seq,
    account_id,
    at,
    actor: short(actor),
    client: client === null ? null : short(client),
    address: address === null ? null : short(address),
    action,
    target: target === null ? null : short(target),
    identity_id: identity_id === null ? null : short(identity_id),
    count,
    detail: detail.length > longest.detail ? '{"too_long":true}' : detail,
  }
}

/** What others chose is cut, and written so that its bytes are those that SQLite stores. */
function short(text: string): string {
  return text.slice(0, longest.text).toWellFormed().replaceAll('\0', '')
}

function bytesOf(row: NewRow): HashedRow {
  return Object.fromEntries(
    hashedColumns.map((column) => [column, row[column] === null ? null : Buffer.from(String(row[column]))]),
  ) as HashedRow
}
