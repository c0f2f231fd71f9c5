import { type Clock, hour, iso } from '../core/clock.ts'
import { type Caller, makerOf } from '../core/scopes.ts'
import { empty, sql, type Sql, type Transaction } from '../store/database.ts'
import type { StoredHold } from './holds.ts'

/** How long an approval can be used, in milliseconds. */
const usableFor = hour

/** Something that is held, as its sender asks for it again; null for no amount, which is over any. */
export interface Wanted {
  caller: Caller
  about: string
  amount: number | null
  /** Of what is asked for, where an approval is of exactly that; null where it is of an amount. */
  sha256: string | null
}

/** The holds of what does not leave by itself, such as the reveal of a card: its sender repeats the call once it is approved. */
export class Approvals {
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Uses up the approval of the smallest amount that suffices; returns whether there was one. */
  async use(tx: Transaction, wanted: Wanted): Promise<boolean> {
    const now = this.#clock.now()
    const usable = sql`status = 'approved' AND used_at IS NULL AND decided_at > ${iso(now - usableFor)}`
    const row = await find(tx, wanted, usable)
    if (row) await tx.run(sql`UPDATE holds SET used_at = ${iso(now)} WHERE id = ${row.id}`)
    return row !== undefined
  }

  /** The id of the open hold that covers it; undefined without one. */
  async openHold(tx: Transaction, wanted: Wanted): Promise<string | undefined> {
    const row = await find(tx, wanted, sql`status = 'open' AND expires_at > ${iso(this.#clock.now())}`)
    return row?.id
  }
}

function find(
  tx: Transaction,
  { caller, about, amount, sha256 }: Wanted,
  condition: Sql,
): Promise<Pick<StoredHold, 'id'> | undefined> {
  const most = Number.MAX_SAFE_INTEGER
  const exact = sha256 === null ? empty : sql` AND sha256 = ${sha256}`
  return tx.get(
    sql`SELECT id FROM holds WHERE about = ${about} AND created_by IS NOT DISTINCT FROM ${makerOf(caller)} AND ${condition}${exact}
      AND coalesce(amount_cents, ${most}) >= ${amount ?? most} ORDER BY coalesce(amount_cents, ${most}), seq LIMIT 1`,
  )
}
