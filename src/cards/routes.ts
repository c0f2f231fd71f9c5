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

const whatRevealDoes =
  'With amount_cents, that much of the budget is reserved in the same step that checks it: reveals at the same time never reserve more than ' +
  'there is. Refused are a frozen card, a cancelled one, and what the budget does not allow (forbidden, codes card_frozen, card_cancelled, ' +
  'budget_exceeded). Every attempt is among the transactions. A repetition with the same Idempotency-Key reads the card again and charges ' +
  'nothing; the encrypted data is never kept with the key.'

export function routes(cards: Cards, reveals: Reveals, ledger: Ledger): AnyRoute[] {
  return [
    route('POST', '/identities/:id/cards', {
      scope: 'cards:write',
      summary: 'Store a card',
      description:
        'The number, expiry and security code are encrypted by you, under a card key that the box never sees; if you lose it, nobody can read ' +
        'them. What is readable is refused. The budget and the name each have two spellings.',
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
      summary: 'List cards',
      description: 'Newest first, cancelled ones too. Never with what is secret of them.',
      query: Paging,
      reply: Page(Card),
      handle: ({ caller, params, query }) => cards.list(caller, params.id, query),
    }),
    route('GET', '/cards/:id', {
      scope: 'cards:read',
      summary: 'Get a card',
      reply: Card,
      handle: ({ caller, params }) => cards.get(caller, params.id),
    }),
    route('POST', '/cards/:id/reveal', {
      scope: 'cards:read',
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
      summary: 'Reveal a card by GET',
      description: `The same for clients that ask with GET; only with an API key in the Authorization header. ${whatRevealDoes}`,
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
      summary: 'Freeze a card',
      description: 'Once this is answered no reveal succeeds. A frozen card stays frozen.',
      reply: Card,
      handle: ({ caller, params }) => cards.freeze(caller, params.id),
    }),
    route('POST', '/cards/:id/unfreeze', {
      scope: 'cards:write',
      summary: 'Unfreeze a card',
      description: 'A conflict when the card is not frozen.',
      reply: Card,
      handle: ({ caller, params }) => cards.unfreeze(caller, params.id),
    }),
    route('POST', '/cards/:id/cancel', {
      stores: false,
      scope: 'cards:write',
      summary: 'Cancel a card',
      description: 'For ever: its encrypted data is destroyed. What it was and what was spent stays to be read.',
      reply: Card,
      handle: ({ caller, params }) => cards.cancel(caller, params.id),
    }),
    route('GET', '/cards/:id/limits', {
      scope: 'cards:read',
      summary: "Get a card's limits",
      reply: CardLimits,
      handle: ({ caller, params }) => cards.limits(caller, params.id),
    }),
    route('PATCH', '/cards/:id/limits', {
      scope: 'cards:write',
      receipt: ['card_id'],
      summary: "Change a card's limits",
      description:
        'A new period keeps what is spent until it ends. A budget below what is spent refuses every reveal until then.',
      body: LimitsChange,
      reply: CardLimits,
      example: { body: { budget_cents: 75_000, reset_spent: true } },
      handle: ({ caller, params, body }) => cards.setLimits(caller, params.id, body),
    }),
    route('GET', '/cards/:id/transactions', {
      scope: 'cards:read',
      summary: "List a card's transactions",
      description:
        'Newest first: every reveal, allowed or not, what was reported and refunded, and when what is spent was set back.',
      query: TransactionFilter,
      reply: Page(CardTransaction),
      handle: ({ caller, params, query }) => ledger.list(caller, params.id, query),
    }),
    route('POST', '/cards/:id/transactions', {
      scope: 'cards:write',
      summary: 'Record what was spent',
      description:
        'A report adds real spending; one with reveal_id replaces what that reveal reserved by the real amount, once. It is never refused for ' +
        'the budget: remaining_cents may fall below 0. A refund takes off what is spent, down to 0.',
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
  throw new Fault('forbidden', 'A card is revealed by GET only with an API key; with a session, use POST.', {
    code: 'key_required',
  })
}
