import { Fault } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Cards } from './cards.ts'
import type { Ledger } from './ledger.ts'
import {
  Card,
  CardLimits,
  CardTransaction,
  LimitsChange,
  NewCard,
  NewTransaction,
  Revealed,
  RevealQuery,
  RevealInput,
  TransactionFilter,
} from './model.ts'
import type { Reveals } from './reveals.ts'

const route = routeOf('Cards')

const revealRefusals = ['card_frozen', 'card_cancelled', 'budget_exceeded', 'policy_refused']

const whatRevealDoes =
  'With amount_cents, that amount of the budget is checked and reserved atomically: concurrent reveals never reserve more than ' +
  'is left; without it only the status of the card is checked. Rejected if the card is frozen or cancelled, or the budget is too small (forbidden, codes card_frozen, card_cancelled, ' +
  'budget_exceeded). Where a policy holds it for a person (conflict, code held), the same call succeeds once, within an hour of the approval. Every attempt is recorded as a transaction. A repetition with the same Idempotency-Key reads the card again and charges ' +
  'nothing; the encrypted data is never stored with the key.'

/** A refused reveal commits too: it is in the ledger. */
const revealed = { action: 'card.revealed', when: (outcome: object) => !('refusal' in outcome) }

export function routes(cards: Cards, reveals: Reveals, ledger: Ledger): AnyRoute[] {
  return [
    route('POST', '/identities/:id/cards', {
      scope: 'cards:write',
      sdk: 'cards.create',
      errors: { 403: ['plan_limit_reached'] },
      audit: 'card.created',
      summary: 'Store a card',
      description:
        'The client encrypts the number, expiry and security code with a card key that the box never receives; if the key is lost, nobody can read ' +
        'them. Unencrypted data is rejected. The budget and the name can each be given in two forms.',
      body: NewCard,
      reply: Card,
      status: 201,
      location: (card) => `/v1/cards/${card.id}`,
      example: {
        body: {
          encrypted_data: 'q83vEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0Vg==',
          last4: '4242',
          brand: 'visa',
          exp_month: 8,
          exp_year: 2039,
          label: 'travel',
          budget: { amount: 50_000, currency: 'usd', period: 'monthly' },
        },
      },
      handle: ({ caller, params, body }) => cards.create(caller, params.id, body),
    }),
    route('GET', '/identities/:id/cards', {
      scope: 'cards:read',
      sdk: 'cards.list',
      summary: 'List cards',
      description: 'Newest first, including cancelled ones. Without their encrypted data.',
      query: Paging,
      reply: Page(Card),
      handle: ({ caller, params, query }) => cards.list(caller, params.id, query),
    }),
    route('GET', '/cards/:id', {
      scope: 'cards:read',
      sdk: 'cards.get',
      summary: 'Get a card',
      reply: Card,
      handle: ({ caller, params }) => cards.get(caller, params.id),
    }),
    route('POST', '/cards/:id/reveal', {
      scope: 'cards:read',
      sdk: 'cards.reveal',
      errors: { 403: revealRefusals, 409: ['held'], 429: ['too_many_holds'] },
      audit: revealed,
      summary: 'Reveal a card',
      description: whatRevealDoes,
      body: RevealInput,
      reply: Revealed,
      secret: true,
      example: { body: { amount_cents: 1250, purpose: 'train to Lyon' } },
      handle: ({ caller, params, body, remember }) => reveals.reveal(caller, params.id, body, remember),
      again: ({ caller, params }, memo) => reveals.again(caller, params.id, memo),
    }),
    route('GET', '/cards/:id/reveal', {
      scope: 'cards:read',
      errors: { 403: [...revealRefusals, 'key_required'], 409: ['held'], 429: ['too_many_holds'] },
      audit: revealed,
      summary: 'Reveal a card by GET',
      description: `The same for clients that use GET; only with an API key in the Authorization header. ${whatRevealDoes}`,
      query: RevealQuery,
      reply: Revealed,
      secret: true,
      effect: true,
      idempotent: true,
      example: { query: { amount_cents: '1250' } },
      handle: async ({ caller, params, query, remember }) => {
        requireKey(caller)
        return reveals.reveal(caller, params.id, query, remember)
      },
      again: async ({ caller, params }, memo) => {
        requireKey(caller)
        return reveals.again(caller, params.id, memo)
      },
    }),
    route('POST', '/cards/:id/freeze', {
      stores: false,
      scope: 'cards:write',
      sdk: 'cards.freeze',
      errors: { 409: ['card_cancelled'] },
      audit: 'card.frozen',
      summary: 'Freeze a card',
      description: 'After the response no reveal succeeds. A card that is frozen already stays frozen.',
      reply: Card,
      handle: ({ caller, params }) => cards.freeze(caller, params.id),
    }),
    route('POST', '/cards/:id/unfreeze', {
      scope: 'cards:write',
      sdk: 'cards.unfreeze',
      errors: { 409: ['card_not_frozen', 'card_cancelled'] },
      audit: 'card.unfrozen',
      summary: 'Unfreeze a card',
      description: 'A conflict when the card is not frozen.',
      reply: Card,
      handle: ({ caller, params }) => cards.unfreeze(caller, params.id),
    }),
    route('POST', '/cards/:id/cancel', {
      stores: false,
      scope: 'cards:write',
      sdk: 'cards.cancel',
      audit: 'card.cancelled',
      summary: 'Cancel a card',
      description: 'Permanent: its encrypted data is destroyed. The card and its transactions remain readable.',
      reply: Card,
      handle: ({ caller, params }) => cards.cancel(caller, params.id),
    }),
    route('GET', '/cards/:id/limits', {
      scope: 'cards:read',
      sdk: 'cards.limits',
      summary: "Get a card's limits",
      reply: CardLimits,
      handle: ({ caller, params }) => cards.limits(caller, params.id),
    }),
    route('PATCH', '/cards/:id/limits', {
      scope: 'cards:write',
      receipt: ['card_id'],
      sdk: 'cards.updateLimits',
      errors: { 409: ['card_cancelled', 'currency_in_use'] },
      audit: 'card_limits.changed',
      summary: "Change a card's limits",
      description:
        'A new period keeps the spent amount until it ends. With a budget below the spent amount, every reveal is rejected until then.',
      body: LimitsChange,
      reply: CardLimits,
      example: { body: { budget_cents: 75_000, reset_spent: true } },
      handle: ({ caller, params, body }) => cards.setLimits(caller, params.id, body),
    }),
    route('GET', '/cards/:id/transactions', {
      scope: 'cards:read',
      sdk: 'cards.transactions',
      summary: "List a card's transactions",
      description:
        'Newest first: every reveal, allowed or rejected, every report and refund, and every reset of the spent amount.',
      query: TransactionFilter,
      reply: Page(CardTransaction),
      handle: ({ caller, params, query }) => ledger.list(caller, params.id, query),
    }),
    route('POST', '/cards/:id/transactions', {
      scope: 'cards:write',
      sdk: 'cards.report',
      errors: { 403: ['plan_limit_reached'], 409: ['already_reported'] },
      audit: 'card.reported',
      summary: 'Record spending',
      description:
        'A report adds real spending; with reveal_id, the first one replaces the amount reserved by that reveal. It is never rejected because of ' +
        'the budget: remaining_cents may fall below 0. A refund reduces the spent amount, down to 0.',
      body: NewTransaction,
      reply: CardTransaction,
      status: 201,
      example: { body: { type: 'report', amount_cents: 1199, description: 'ticket' } },
      handle: ({ caller, params, body }) => ledger.report(caller, params.id, body),
    }),
  ]
}

/** Browsers send a session's cookie with any followed link, which must not charge a card. */
function requireKey({ key_id }: Caller): void {
  if (key_id !== null) return
  throw new Fault('forbidden', 'A card can be revealed by GET only with an API key; with a session, use POST.', {
    code: 'key_required',
  })
}
