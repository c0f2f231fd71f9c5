import * as z from 'zod'
import { HoldState, Id, Line, Paging, Timestamp } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'

export const Period = z.enum(['one_time', 'daily', 'weekly', 'monthly', 'yearly']).meta({ id: 'Period' })
export type Period = z.output<typeof Period>

/** Minor units of the card's currency. */
const Amount = z.int().min(0)

const Text = Line(500)
const CardName = Line(128)

const Currency = z
  .string()
  .regex(/^[A-Za-z]{3}$/, { error: 'must be a currency code of three letters (ISO 4217), such as usd' })
  .transform((text) => text.toLowerCase())
  .meta({ override: { type: 'string', pattern: '^[A-Za-z]{3}$' }, description: 'ISO 4217, stored in lower case' })

const Budget = z.object({ amount: z.int(), currency: z.string(), period: Period }).meta({ id: 'Budget' })

const CardStatus = z.enum(['active', 'frozen', 'cancelled'])

/** A card without its encrypted data. */
export const Card = z
  .object({
    id: Id('card'),
    identity_id: Id('ident'),
    last4: z.string(),
    brand: z.string(),
    exp_month: z.int(),
    exp_year: z.int(),
    budget_cents: z.int().meta({ description: 'in minor units of the currency' }),
    spent_cents: z.int().meta({ description: 'in this period: reserved by reveals, or reported' }),
    status: CardStatus,
    card_name: z.string(),
    label: z.string().meta({ description: 'the same as card_name' }),
    budget: Budget.meta({ description: 'the same as budget_cents, currency and period' }),
    currency: z.string(),
    period: Period,
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Card' })
export type Card = z.output<typeof Card>

export const NewCard = z
  .strictObject({
    encrypted_data: z
      .string()
      .max(12_000)
      .meta({
        override: { type: 'string', format: 'byte', maxLength: 12_000 },
        description:
          'base64 (also for URLs, without padding, with line breaks) of nonce, ciphertext and tag of AES-256-GCM under the card key, which the box never receives',
      }),
    last4: z.string().regex(/^\d{4}$/, { error: 'must be the last four digits of the number' }),
    brand: z
      .string()
      .trim()
      .toLowerCase()
      .regex(/^[a-z0-9][a-z0-9 _-]{0,31}$/, { error: 'must be a name such as visa, of 1 to 32 letters, digits, spaces, - and _' })
      .meta({ override: { type: 'string', minLength: 1, maxLength: 32 }, description: 'kept in lower case' }),
    exp_month: z.int().min(1).max(12),
    exp_year: z
      .int()
      .min(1000, { error: 'must have four digits' })
      .max(9999)
      .meta({ description: 'four digits, not in the past' }),
    card_name: CardName.optional().meta({ description: 'required, here or as label' }),
    label: CardName.optional().meta({ description: 'the same as card_name' }),
    budget_cents: Amount.optional().meta({ description: 'in minor units of the currency; required here or in budget' }),
    currency: Currency.optional().meta({ description: 'ISO 4217, stored in lower case; default usd' }),
    period: Period.optional().meta({
      description: 'when spent_cents is reset to 0: default one_time (never); in UTC, weeks start on Monday',
    }),
    budget: z
      .strictObject({ amount: Amount, currency: Currency.optional(), period: Period.optional() })
      .optional()
      .meta({ description: 'the same as budget_cents, currency and period' }),
  })
  .meta({ id: 'NewCard' })
export type NewCard = z.output<typeof NewCard>

export const CardLimits = z
  .object({
    card_id: Id('card'),
    budget_cents: z.int(),
    spent_cents: z.int(),
    remaining_cents: z.int().meta({ description: 'budget minus spent; below 0 if more was reported than budgeted' }),
    status: CardStatus,
    period: Period,
    currency: z.string(),
    resets_at: Timestamp.nullable().meta({ description: 'time at which spent_cents is reset to 0; null for one_time' }),
  })
  .meta({ id: 'CardLimits' })
export type CardLimits = z.output<typeof CardLimits>

export const LimitsChange = z
  .strictObject({
    budget_cents: Amount.optional(),
    currency: Currency.optional().meta({ description: 'can be changed only while nothing is spent' }),
    period: Period.optional(),
    budget: z
      .strictObject({ amount: Amount.optional(), currency: Currency.optional(), period: Period.optional() })
      .optional()
      .meta({ description: 'the same as budget_cents, currency and period' }),
    reset_spent: z.boolean().optional().meta({ description: 'true resets spent_cents to 0' }),
    reset_spend: z.boolean().optional().meta({ description: 'the same as reset_spent' }),
  })
  .meta({ id: 'LimitsChange' })
export type LimitsChange = z.output<typeof LimitsChange>

/** Values of `reason` of a reveal: why it was refused, that a person must approve it, or that it repeats an answer (and charges nothing). */
export const RevealReason = z.enum(['card_frozen', 'card_cancelled', 'budget_exceeded', 'policy_refused', 'held', 'repeated'])
export type RevealReason = z.output<typeof RevealReason>

export const CardTransaction = z
  .object({
    id: Id('txn'),
    card_id: Id('card'),
    type: z.enum(['reveal', 'report', 'refund', 'reset']),
    amount_cents: z.int().nullable().meta({ description: 'null for a reveal without an amount' }),
    allowed: z.boolean(),
    reason: RevealReason.nullable().meta({
      description:
        'why a reveal was rejected; held: a person must approve it first; repeated: returned again for the same Idempotency-Key, without a charge',
    }),
    reveal_id: Id('txn').nullable().meta({ description: 'the reveal that this transaction reports, refunds or repeats' }),
    spent_cents: z.int().meta({ description: 'of the card, after this transaction' }),
    key_id: Id('key').nullable(),
    ip: z.string(),
    user_agent: z.string(),
    purpose: z.string().nullable(),
    description: z.string().nullable(),
    created_at: Timestamp,
  })
  .meta({ id: 'CardTransaction' })
export type CardTransaction = z.output<typeof CardTransaction>

export const NewTransaction = z
  .strictObject({
    type: z.enum(['report', 'refund']),
    amount_cents: Amount,
    reveal_id: Id('txn')
      .optional()
      .meta({ description: 'the reveal it belongs to; the first report for a reveal replaces the amount it reserved' }),
    description: Text.optional(),
  })
  .meta({ id: 'NewTransaction' })
export type NewTransaction = z.output<typeof NewTransaction>

export const TransactionFilter = z.strictObject({ ...Paging.shape, type: CardTransaction.shape.type.optional() })
export type TransactionFilter = z.output<typeof TransactionFilter>

export const RevealInput = z
  .strictObject({
    amount_cents: Amount.optional().meta({ description: 'the amount to reserve of the budget; rejected if too little is left' }),
    purpose: Text.optional().meta({ description: 'the purpose; stored with the transaction' }),
  })
  .meta({ id: 'RevealWish' })
export type RevealInput = z.output<typeof RevealInput>

/** The same fields in a query. */
export const RevealQuery = z.strictObject({
  amount_cents: z
    .string()
    .regex(/^\d{1,16}$/, { error: 'must be a whole number of at least 0' })
    .transform(Number)
    .refine((value) => Number.isSafeInteger(value), { error: 'must be at most 9007199254740991' })
    .optional()
    .meta({
      override: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
      description: 'the amount to reserve of the budget; rejected if too little is left',
    }),
  purpose: Text.optional().meta({ description: 'the purpose; stored with the transaction' }),
})

/** The only response that contains the encrypted data. */
export const Revealed = z
  .object({
    encrypted_data: z.string().meta({ description: 'base64, exactly as it was given' }),
    card: Card,
    transaction: CardTransaction,
  })
  .meta({ id: 'Revealed' })
export type Revealed = z.output<typeof Revealed>

/** A reveal that a person must approve. */
export const HeldCard = z
  .object({
    ...Card.shape,
    amount_cents: z.int().nullable().meta({ description: 'to be reserved; null for a reveal without an amount' }),
    purpose: z.string().nullable(),
    used_at: Timestamp.nullable().meta({ description: 'when the approved reveal took place' }),
    hold: HoldState,
  })
  .meta({ id: 'HeldCard' })
export type HeldCard = z.output<typeof HeldCard>

const CardRevealed = z.object({ ...Card.shape, transaction: CardTransaction }).meta({ id: 'CardRevealed' })

export const cardCreated = eventType('card.created', ['cards:read'], 'A card was stored.', Card)
export const cardRevealed = eventType('card.revealed', ['cards:read'], "A card's encrypted data was revealed.", CardRevealed)
export const cardFrozen = eventType('card.frozen', ['cards:read'], 'A card was frozen.', Card)
export const cardUnfrozen = eventType('card.unfrozen', ['cards:read'], 'A frozen card is active again.', Card)
export const cardCancelled = eventType(
  'card.cancelled',
  ['cards:read'],
  'A card was cancelled, alone or with its identity; its encrypted data was destroyed.',
  Card,
)
export const cardLimitsUpdated = eventType(
  'card.limits_updated',
  ['cards:read'],
  "A card's budget, currency or period was changed, or its spent amount reset.",
  Card,
)
export const cardHeld = eventType('card.held', ['cards:read'], 'A reveal waits for a person.', HeldCard)
export const cardApproved = eventType(
  'card.approved',
  ['cards:read'],
  'A held reveal was approved: the same call succeeds once, within an hour.',
  HeldCard,
)
export const cardRejected = eventType('card.rejected', ['cards:read'], 'A held reveal was rejected.', HeldCard)
export const cardExpired = eventType('card.expired', ['cards:read'], 'Nobody approved a held reveal in time.', HeldCard)
