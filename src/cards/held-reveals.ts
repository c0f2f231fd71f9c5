import { hash } from 'node:crypto'
import type { Basis } from '../basis.ts'
import { notFound } from '../core/fault.ts'
import { type Caller, makerOf } from '../core/scopes.ts'
import type { HoldState } from '../core/shapes.ts'
import type { EventType } from '../events/model.ts'
import type { HoldHandler, StoredHold } from '../policy/holds.ts'
import type { Held } from '../policy/policy-check.ts'
import type { PolicyModule } from '../policy/module.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import { cardApproved, cardExpired, cardHeld, cardRejected, type HeldCard } from './model.ts'
import { type CardRow, toCard } from './row.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock'> {
  policy: Pick<PolicyModule, 'holds' | 'approvals'>
}

/** A reveal that a policy holds. */
interface HeldReveal {
  caller: Caller
  card: CardRow
  amount: number | null
  purpose: string | null
  held: Held
}

/** Reveals that a person must approve. An approved one takes place when its sender repeats the call. */
export class HeldReveals implements HoldHandler<'card'> {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Uses the approval of this reveal, in the transaction of it; returns false when there is none. */
  use(tx: Transaction, { caller, card, amount }: HeldReveal): Promise<boolean> {
    return this.#deps.policy.approvals.use(tx, { caller, about: card.id, amount })
  }

  /** The id of the hold of a reveal, which is made unless an open one covers it, and whether it is new. */
  async hold(tx: Transaction, { caller, card, amount, purpose, held }: HeldReveal): Promise<{ id: string; isNew: boolean }> {
    const { holds, approvals } = this.#deps.policy
    const { id, account_id, identity_id } = card
    const known = await approvals.openHold(tx, { caller, about: id, amount })
    if (known !== undefined) return { id: known, isNew: false }
    const owner = { id: identity_id, account_id }
    const hold = await holds.prepare(tx, owner)
    const sha256 = digestOf(id, amount, purpose)
    const asked = { amount_cents: amount, purpose }
    const created_by = makerOf(caller)
    await holds.insert(tx, hold, { kind: 'card', owner, created_by, caller, about: id, sha256, held, ...asked })
    await this.#emit(tx, cardHeld, card, { ...asked, used_at: null, hold })
    return { id: hold.id, isNew: true }
  }

  async digest({ about, amount_cents, purpose }: StoredHold): Promise<string | undefined> {
    const card = await cardOf(this.#deps.database, about)
    return card && digestOf(about, amount_cents, purpose)
  }

  async release(tx: Transaction, row: StoredHold, hold: HoldState): Promise<void> {
    const card = await cardOf(tx, row.about)
    if (!card) throw notFound('card')
    await this.#emit(tx, cardApproved, card, reveal(row, hold))
  }

  async dismiss(tx: Transaction, row: StoredHold, hold: HoldState): Promise<void> {
    const card = await cardOf(tx, row.about)
    if (!card || hold.status === 'cancelled') return
    await this.#emit(tx, hold.status === 'expired' ? cardExpired : cardRejected, card, reveal(row, hold))
  }

  async read(_caller: Caller, row: StoredHold): Promise<HeldCard | null> {
    const { database, clock } = this.#deps
    const card = await cardOf(database, row.about)
    const { id, status, expires_at, decided_at, reason } = row
    return card ? { ...toCard(card, clock.now()), ...reveal(row, { id, status, expires_at, decided_at, reason }) } : null
  }

  async #emit(tx: Transaction, type: EventType<HeldCard>, card: CardRow, asked: Reveal): Promise<void> {
    const { events, clock } = this.#deps
    const { account_id, identity_id } = card
    await events.append(tx, type, { account_id, identity_id, data: { ...toCard(card, clock.now()), ...asked } })
  }
}

type Reveal = Pick<HeldCard, 'amount_cents' | 'purpose' | 'used_at' | 'hold'>

function reveal({ amount_cents, purpose, used_at }: StoredHold, hold: HoldState): Reveal {
  return { amount_cents, purpose, used_at, hold }
}

/** SHA-256 of what a person looks at, in hexadecimal. */
function digestOf(card: string, amount: number | null, purpose: string | null): string {
  return hash('sha256', `${card}\n${amount ?? ''}\n${purpose ?? ''}`)
}

function cardOf(reader: Reader, id: string): Promise<CardRow | undefined> {
  return reader.get<CardRow>(
    sql`SELECT cards.* FROM cards JOIN identities ON identities.id = cards.identity_id WHERE cards.id = ${id} AND identities.status <> 'deleted'`,
  )
}
