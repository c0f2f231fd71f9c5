import { hash } from 'node:crypto'
import type { Basis } from '../basis.ts'
import { type Clock, iso } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { isOfLiving } from '../identities/row.ts'
import type { HeldReveals } from '../policy/held-reveals.ts'
import type { PolicyModule } from '../policy/module.ts'
import type { PolicyCheck } from '../policy/policy-check.ts'
import { empty, sql, type Transaction } from '../store/database.ts'
import { givenForm } from './encrypted.ts'
import { type Ledger, type TransactionRow, toCardTransaction } from './ledger.ts'
import {
  cardApproved,
  cardExpired,
  cardHeld,
  cardRejected,
  cardRevealed,
  type Revealed,
  type RevealInput,
  type RevealReason,
} from './model.ts'
import { budgetState, type CardRow, rollOver, rowOf, spentAt, toCard } from './row.ts'
import { readSecret } from './secrets.ts'

type HeldCardReveals = HeldReveals<'card', CardRow>

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock'> {
  ledger: Ledger
  policyCheck: PolicyCheck
  heldReveals: HeldCardReveals
}

type Refusal = Exclude<RevealReason, 'repeated' | 'held'>

/** A card's row with its encrypted data in base64. */
type Open = CardRow & { encrypted_data: string }

/** The result of a reveal: the data, the reason of the refusal, or the id of the hold that a person decides. All are committed. */
type Outcome = { open: Open; transaction: TransactionRow; now: number } | { refusal: Refusal } | { hold: string }

/** Stores, in the transaction of the reveal, its id for a repeated call. */
type Remember = (tx: Transaction, memo: string) => Promise<void>

/** Reveals the encrypted data of cards, and reserves the amount in their budgets. */
export class Reveals {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * Checks and reserves in one statement, so that concurrent reveals never exceed the budget. Throws Fault forbidden `card_frozen`,
   * `card_cancelled`, `budget_exceeded` or `policy_refused`, and conflict `held` where a person must approve it first; that attempt is in the ledger too.
   */
  async reveal(caller: Caller, id: string, input: RevealInput, remember: Remember): Promise<Revealed> {
    const { database, clock, ledger } = this.#deps
    const outcome = await database.transaction<Outcome>(async (tx) => {
      const now = clock.now()
      const before = await rowOf(tx, clock, caller, id)
      const amount_cents = input.amount_cents ?? null
      const purpose = input.purpose ?? null
      const entry = { type: 'reveal', amount_cents, purpose } as const
      const verdict = isWithin(before, amount_cents, now) ? await this.#judge(tx, caller, before, entry, now) : undefined
      if (verdict !== undefined && verdict !== 'policy_refused') return verdict
      const open = verdict === undefined ? await this.#reserve(tx, id, amount_cents, now) : undefined
      const refusal = open ? null : (verdict ?? refusalOf(before))
      const transaction = await ledger.record(tx, caller, open ?? before, now, {
        ...entry,
        allowed: refusal === null,
        reason: refusal,
      })
      await remember(tx, transaction.id)
      if (!open) return { refusal: refusal! }
      await this.#emit(tx, open, transaction, now)
      return { open, transaction, now }
    })
    return this.#answer(outcome)
  }

  /** Answers a repeated call: the card as it is now, nothing charged; refused once it is frozen or cancelled, or a policy refuses it. */
  async again(caller: Caller, id: string, transactionId: string): Promise<Revealed> {
    const { database, clock, ledger, policyCheck } = this.#deps
    const outcome = await database.transaction<Outcome>(async (tx) => {
      const now = clock.now()
      const before = await rowOf(tx, clock, caller, id)
      const first = (await ledger.find(tx, transactionId))!
      if (first.allowed === 0) return { refusal: first.reason as Refusal }
      const owner = { id: before.identity_id, account_id: before.account_id }
      // what a policy would hold by now was let go the first time
      const isRefused = (await policyCheck.card(tx, caller, { owner, amount: first.amount_cents })) === 'refused'
      const open = isRefused ? undefined : await this.#open(tx, id)
      const entry = { type: 'reveal', amount_cents: null, reveal_id: first.id, purpose: first.purpose } as const
      const refusal = open ? null : isRefused ? 'policy_refused' : refusalOf(before)
      const reason = refusal ?? 'repeated'
      const transaction = await ledger.record(tx, caller, open ?? before, now, { ...entry, allowed: refusal === null, reason })
      if (!open) return { refusal: refusal! }
      await this.#emit(tx, open, transaction, now)
      return { open, transaction: first, now }
    })
    return this.#answer(outcome)
  }

  /** What policies say of a reveal that the card allows: undefined when it may take place. Uses an approval where one is needed. */
  async #judge(
    tx: Transaction,
    caller: Caller,
    card: CardRow,
    entry: { type: 'reveal'; amount_cents: number | null; purpose: string | null },
    now: number,
  ): Promise<'policy_refused' | { hold: string } | undefined> {
    const { policyCheck, heldReveals, ledger } = this.#deps
    const { amount_cents, purpose } = entry
    const owner = { id: card.identity_id, account_id: card.account_id }
    const held = await policyCheck.card(tx, caller, { owner, amount: amount_cents })
    if (held === undefined) return undefined
    if (held === 'refused') return 'policy_refused'
    const reveal = { caller, row: card, amount_cents, purpose, held }
    if (await heldReveals.use(tx, reveal)) return undefined
    const { id, isNew } = await heldReveals.hold(tx, reveal)
    // a repeated call adds nothing
    if (isNew) await ledger.record(tx, caller, card, now, { ...entry, allowed: false, reason: 'held' })
    return { hold: id }
  }

  #answer(outcome: Outcome): Revealed {
    if ('hold' in outcome) throw this.#deps.heldReveals.fault(outcome.hold)
    if ('refusal' in outcome) throw new Fault('forbidden', refusals[outcome.refusal], { code: outcome.refusal })
    const { open, transaction, now } = outcome
    return {
      encrypted_data: open.encrypted_data,
      card: toCard(open, now),
      transaction: toCardTransaction(transaction),
    }
  }

  /** Without an amount, what was spent may be above the budget. */
  async #reserve(tx: Transaction, id: string, amount: number | null, now: number): Promise<Open | undefined> {
    const spent = sql`${spentAt(now)} + ${amount ?? 0}`
    const within = amount === null ? empty : sql` AND ${spent} <= budget_cents`
    const touched = (amount ?? 0) > 0 ? sql`, updated_at = ${iso(now)}` : sql``
    const { changes } = await tx.run(
      sql`UPDATE cards SET spent_cents = ${spent}, ${rollOver(now)}${touched}
        WHERE id = ${id} AND status = 'active'${within}`,
    )
    return changes === 1 ? this.#open(tx, id) : undefined
  }

  async #open(tx: Transaction, id: string): Promise<Open | undefined> {
    const row = await tx.get<CardRow>(sql`SELECT * FROM cards WHERE id = ${id} AND status = 'active'`)
    return row && { ...row, encrypted_data: givenForm(await readSecret(tx, row.secret_slot!)) }
  }

  async #emit(tx: Transaction, card: CardRow, transaction: TransactionRow, now: number): Promise<void> {
    const { account_id, identity_id } = card
    const data = { ...toCard(card, now), transaction: toCardTransaction(transaction) }
    await this.#deps.events.append(tx, cardRevealed, { account_id, identity_id, data, refusable: true })
  }
}

/** True if the card is active, and its budget suffices. */
function isWithin(card: CardRow, amount: number | null, now: number): boolean {
  if (card.status !== 'active') return false
  return amount === null || budgetState(card, now).spent_cents + amount <= card.budget_cents
}

const refusals: Record<Refusal, string> = {
  card_frozen: 'The card is frozen; unfreeze it first, with a key that has cards:write, or ask whoever stored it.',
  card_cancelled: 'The card is cancelled, and its encrypted data is destroyed.',
  budget_exceeded:
    'The remaining budget of the card is too small. GET /v1/cards/{id}/limits shows what is left and when it resets; ask whoever stored the card for more.',
  policy_refused:
    'The policy of this account does not let this card be revealed, and a repetition will not either. Ask a person of the account, or whoever runs this box.',
}

function refusalOf({ status }: CardRow): Refusal {
  return status === 'frozen' ? 'card_frozen' : status === 'cancelled' ? 'card_cancelled' : 'budget_exceeded'
}

/** The reveals that wait for a person, or were approved: of a card, for an amount or a smaller one. */
export function heldCardReveals(policy: PolicyModule, clock: Clock): HeldCardReveals {
  return policy.heldReveals({
    kind: 'card',
    find: (reader, id) =>
      reader.get<CardRow>(sql`SELECT * FROM cards WHERE id = ${id} AND ${isOfLiving(sql`identity_id`, iso(clock.now()))}`),
    digest: ({ id }, { amount_cents, purpose }) => hash('sha256', `${id}\n${amount_cents ?? ''}\n${purpose ?? ''}`),
    isExact: false,
    show: (row, { amount_cents, purpose, used_at, hold }) => ({
      ...toCard(row, clock.now()),
      amount_cents,
      purpose,
      used_at,
      hold,
    }),
    repeated: 'the same key and this amount or a smaller one',
    events: { held: cardHeld, approved: cardApproved, rejected: cardRejected, expired: cardExpired },
  })
}
