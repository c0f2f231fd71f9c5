import type { Plan } from '../accounts/plan.ts'
import { type Clock, iso } from '../core/clock.ts'
import { type Cursors, page } from '../store/page.ts'
import { conflict, invalid } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { type Caller, readerOf } from '../core/scopes.ts'
import { type Page, picked } from '../core/shapes.ts'
import { type Database, type Reader, sql, type Transaction } from '../store/database.ts'
import { CardTransaction, type NewTransaction, type TransactionFilter } from './model.ts'
import { budgetState, type CardRow, livingRowOf, rollOver, rowOf, spentAt } from './row.ts'

export interface TransactionRow extends Omit<CardTransaction, 'allowed'> {
  seq: number
  allowed: number
  /** The budget period of the card in which it counts. */
  round: number
}

type Entry = Pick<CardTransaction, 'type' | 'amount_cents'> &
  Partial<Pick<CardTransaction, 'reason' | 'reveal_id' | 'purpose' | 'description' | 'allowed'>>

/** Bytes of a row's texts that are not counted against the quota. */
const little = 256

type Deps = { database: Database; clock: Clock; cursors: Cursors; plan: Plan }

export class Ledger {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async list(caller: Caller, cardId: string, filter: TransactionFilter): Promise<Page<CardTransaction>> {
    await rowOf(this.#deps.database, this.#deps.clock, caller, cardId)
    const { type } = filter
    return page<TransactionRow, CardTransaction>(this.#deps.database, this.#deps.cursors, filter, {
      name: `card transactions ${cardId} ${type ?? ''}`,
      from: sql`card_transactions`,
      account: caller.account_id,
      where: sql`card_id = ${cardId}`,
      filters: type === undefined ? [] : [sql`type = ${type}`],
      present: toCardTransaction,
    })
  }

  /** Reports real spending, which is never refused for the budget; `amount_cents` replaces the amount that the named reveal reserved. */
  report(caller: Caller, cardId: string, input: NewTransaction): Promise<CardTransaction> {
    return this.#deps.database.transaction(async (tx) => {
      const before = await livingRowOf(tx, this.#deps.clock, caller, cardId)
      const reveal = input.reveal_id === undefined ? undefined : await this.#reveal(tx, before, input.reveal_id)
      if (input.type === 'report' && reveal) await requireUnreported(tx, reveal)
      const now = this.#deps.clock.now()
      const change = changeOf(input, reveal, budgetState(before, now).round)
      if (budgetState(before, now).spent_cents + change > Number.MAX_SAFE_INTEGER) {
        throw invalid('amount_cents', 'amount_cents exceeds what a card can record.')
      }
      const after = await tx.get<CardRow>(
        sql`UPDATE cards SET spent_cents = CASE WHEN ${spentAt(now)} + ${change} < 0 THEN 0 ELSE ${spentAt(now)} + ${change} END,
          ${rollOver(now)}, updated_at = ${iso(now)} WHERE id = ${cardId} RETURNING *`,
      )
      const { type, amount_cents, reveal_id = null, description = null } = input
      return toCardTransaction(await this.record(tx, caller, after!, now, { type, amount_cents, reveal_id, description }))
    })
  }

  /** Adds a transaction; `card` is its row afterwards. Throws Fault `plan_limit_reached` for long texts above the quota. */
  async record(tx: Transaction, caller: Caller, card: CardRow, now: number, entry: Entry): Promise<TransactionRow> {
    const { type, amount_cents, allowed = true, reason = null, reveal_id = null, purpose = null, description = null } = entry
    const { spent_cents, round } = budgetState(card, now)
    const octets = Math.max(0, Buffer.byteLength(`${purpose ?? ''}${description ?? ''}`) - little)
    if (octets > 0) {
      await this.#deps.plan.require(tx, card.account_id, 'storage_bytes', octets)
      await this.#deps.plan.add(tx, card.account_id, 'storage_bytes', octets)
    }
    const { key_id, ip, user_agent } = readerOf(caller)
    const row = await tx.get<TransactionRow>(
      sql`INSERT INTO card_transactions (id, card_id, type, amount_cents, allowed, reason, reveal_id, key_id, ip, user_agent, purpose,
        description, spent_cents, round, created_at, octets) VALUES (${newId('txn')}, ${card.id}, ${type}, ${amount_cents}, ${Number(allowed)},
        ${reason}, ${reveal_id}, ${key_id}, ${ip}, ${user_agent}, ${purpose},
        ${description}, ${spent_cents}, ${round}, ${iso(now)}, ${octets}) RETURNING *`,
    )
    return row!
  }

  find(reader: Reader, id: string): Promise<TransactionRow | undefined> {
    return reader.get<TransactionRow>(sql`SELECT * FROM card_transactions WHERE id = ${id}`)
  }

  async #reveal(tx: Transaction, card: CardRow, id: string): Promise<TransactionRow> {
    const row = await this.find(tx, id)
    if (row?.card_id === card.id && row.type === 'reveal' && row.allowed === 1 && row.reason === null) return row
    throw invalid('reveal_id', 'reveal_id must be the id of a reveal transaction of this card.', 'no_such_reveal')
  }
}

export function toCardTransaction(row: TransactionRow): CardTransaction {
  return picked(CardTransaction, { ...row, allowed: row.allowed === 1 })
}

async function requireUnreported(tx: Transaction, reveal: TransactionRow): Promise<void> {
  const known = await tx.get(sql`SELECT 1 FROM card_transactions WHERE reveal_id = ${reveal.id} AND type = 'report'`)
  if (known) {
    throw conflict('The amount of this reveal was reported already.', { code: 'already_reported', param: 'reveal_id' })
  }
}

/** The change to the amount spent in this period. */
function changeOf({ type, amount_cents }: NewTransaction, reveal: TransactionRow | undefined, round: number): number {
  if (type === 'refund') return -amount_cents
  if (!reveal) return amount_cents
  // an amount reserved in an earlier period counts against that period's budget
  return reveal.round === round ? amount_cents - (reveal.amount_cents ?? 0) : 0
}
