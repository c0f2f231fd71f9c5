import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { openAppliance } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { cardsOf, settled, type Settled } from './settled.ts'

const opened = await openAppliance()
const shared: Settled = { box: opened.box, at: await cardsOf(opened.box, 'Shared') }
afterAll(() => opened.close())

describe('storing', () => {
  test('a card in the form of the API and in that of the client library', async () => {
    const world = await settled()
    const { box, at } = world
    const plain = await box.call('POST', at, card({ brand: 'Visa', card_name: 'travel', budget_cents: 50_000 }))
    expect(plain.status).toBe(201)
    expect(plain.headers.get('location')).toBe(`/v1/cards/${plain.body.id}`)
    expect(plain.body).toEqual({
      id: expect.stringMatching(/^card_/),
      identity_id: at.split('/')[3],
      last4: '4242',
      brand: 'visa',
      exp_month: 8,
      exp_year: 2039,
      budget_cents: 50_000,
      spent_cents: 0,
      status: 'active',
      card_name: 'travel',
      label: 'travel',
      budget: { amount: 50_000, currency: 'usd', period: 'one_time' },
      currency: 'usd',
      period: 'one_time',
      created_at: '2026-11-20T10:05:00.000Z',
      updated_at: '2026-11-20T10:05:00.000Z',
    })
    const nested = await box.call(
      'POST',
      at,
      card({ label: 'food', budget: { amount: 900, currency: 'EUR', period: 'monthly' } }),
    )
    expect(nested.body).toMatchObject({ card_name: 'food', budget_cents: 900, currency: 'eur', period: 'monthly' })
    const { body: list } = await box.call('GET', at)
    expect(list).toEqual({ data: [nested.body, plain.body], has_more: false, next_cursor: null })
    expect((await box.call('GET', `/v1/cards/${nested.body.id}`)).body).toEqual(nested.body)
  })

  // a digit by chance next to it would make it another number
  const number = Buffer.concat([Buffer.alloc(20, 0xfe), Buffer.from(' 4242 4242-42424242 '), Buffer.alloc(20, 0xfe)]).toString(
    'base64',
  )
  test.each([
    ['no data', { encrypted_data: undefined }, 'encrypted_data'],
    ['data that is no text', { encrypted_data: 7 }, 'encrypted_data'],
    ['data that is not base64', { encrypted_data: `${bytes(40)}!` }, 'encrypted_data'],
    ['base64 for URLs', { encrypted_data: Buffer.alloc(60, 0xfb).toString('base64url') }, 'encrypted_data'],
    ['base64 without its padding', { encrypted_data: bytes(40).replaceAll('=', '') }, 'encrypted_data'],
    ['base64 with line breaks', { encrypted_data: `${bytes(30)}\n${bytes(30)}` }, 'encrypted_data'],
    ['base64 with stray bits', { encrypted_data: `${'A'.repeat(38)}B=` }, 'encrypted_data'],
    ['28 bytes', { encrypted_data: bytes(28) }, 'encrypted_data'],
    ['8193 bytes', { encrypted_data: bytes(8193) }, 'encrypted_data'],
    [
      'text in the clear',
      { encrypted_data: Buffer.from('{"number":"secret, and in the clear"}').toString('base64') },
      'encrypted_data',
    ],
    [
      'text with accents',
      { encrypted_data: Buffer.from('José Müller-Lüdenscheidt, 12/39, 123').toString('base64') },
      'encrypted_data',
    ],
    ['a number between octets', { encrypted_data: number }, 'encrypted_data'],
    ['three digits', { last4: '424' }, 'last4'],
    ['other digits', { last4: '٤٢٤٢' }, 'last4'],
    ['no brand', { brand: undefined }, 'brand'],
    ['an empty brand', { brand: ' ' }, 'brand'],
    ['month 0', { exp_month: 0 }, 'exp_month'],
    ['month 13', { exp_month: 13 }, 'exp_month'],
    ['a month as text', { exp_month: '8' }, 'exp_month'],
    ['two digits of a year', { exp_year: 39 }, 'exp_year'],
    ['a year past', { exp_year: 2025 }, 'exp_year'],
    ['a month past', { exp_year: 2026, exp_month: 10 }, 'exp_month'],
    ['no name', { card_name: undefined }, 'card_name'],
    ['two names', { card_name: 'a', label: 'b' }, 'label'],
    ['a name of two lines', { card_name: 'a\nb' }, 'card_name'],
    ['no budget', { budget_cents: undefined }, 'budget_cents'],
    ['a negative budget', { budget_cents: -1 }, 'budget_cents'],
    ['part of a cent', { budget_cents: 0.5 }, 'budget_cents'],
    ['a budget as text', { budget_cents: '1000' }, 'budget_cents'],
    ['a budget beyond counting', { budget_cents: 2 ** 53 }, undefined],
    ['a negative nested budget', { budget: { amount: -1 } }, 'budget.amount'],
    ['a nested budget without amount', { budget: { currency: 'usd' } }, 'budget.amount'],
    ['two budgets', { budget: { amount: 1 }, budget_cents: 2 }, 'budget.amount'],
    ['two periods', { budget: { amount: 1, period: 'daily' }, period: 'weekly' }, 'budget.period'],
    ['an unknown period', { period: 'hourly' }, 'period'],
    ['an unknown currency', { currency: 'dollars' }, 'currency'],
    ['an unknown field', { cvc: '123' }, 'cvc'],
  ])('refuses %s', async (_, changes, param) => {
    const { box, at } = shared
    const { status, body } = await box.call('POST', at, card({ ...changes }))
    expect([status, body.error.type, body.error.param]).toEqual([400, 'invalid_request', param])
    const { encrypted_data } = changes as { encrypted_data?: string }
    if (typeof encrypted_data === 'string') expect(body.error.message).not.toContain(encrypted_data.slice(0, 12))
  })

  test.each([29, 8192])('takes data of %d bytes', async (length) => {
    const { box, at } = shared
    const encrypted_data = randomBytes(length).toString('base64')
    const { body } = await box.call('POST', at, card({ encrypted_data }))
    const revealed = await box.call('POST', `/v1/cards/${body.id}/reveal`)
    expect(revealed.body['encrypted_data']).toBe(encrypted_data)
  })

  test('a card is good to the end of its month, everywhere', async () => {
    const world = await settled()
    const { box, clock, at } = world
    clock.advance(Date.UTC(2026, 11, 1, 11, 59) - clock.now())
    expect((await box.call('POST', at, card({ exp_year: 2026, exp_month: 11 }))).status).toBe(201)
    clock.advance(60_000)
    expect((await box.call('POST', at, card({ exp_year: 2026, exp_month: 11 }))).body.error).toMatchObject({
      code: 'card_expired',
    })
  })
})

function bytes(length: number): string {
  return randomBytes(length).toString('base64')
}
