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
    ['base64 in two alphabets', { encrypted_data: '+_'.repeat(30) }, 'encrypted_data'],
    ['base64 with padding inside', { encrypted_data: `${bytes(29)}${bytes(30)}` }, 'encrypted_data'],
    ['base64 with stray bits', { encrypted_data: `${'A'.repeat(38)}B=` }, 'encrypted_data'],
    ['28 bytes', { encrypted_data: bytes(28) }, 'encrypted_data'],
    ['8193 bytes', { encrypted_data: bytes(8193) }, 'encrypted_data'],
    ['a number in the clear', { encrypted_data: base64('4242 4242 4242 4242, 12/39, 123') }, 'encrypted_data'],
    ['JSON in the clear', { encrypted_data: base64('{"number":"4242424242424242","exp":"12/39"}') }, 'encrypted_data'],
    ['a number in JSON that is no text', { encrypted_data: base64('{"number":378282246310005,"cvc":1234}') }, 'encrypted_data'],
    ['a form in the clear', { encrypted_data: base64('pan=5555555555554444&cvc=123&exp=12/39') }, 'encrypted_data'],
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

  const bytesOfText = randomBytes(60)
  test.each([
    ['base64 for URLs', Buffer.alloc(60, 0xfb).toString('base64url')],
    ['base64 for URLs with padding', Buffer.alloc(40, 0xfb).toString('base64').replaceAll('+', '-').replaceAll('/', '_')],
    ['base64 without its padding', bytes(40).replaceAll('=', '')],
    ['base64 with line breaks', `${randomBytes(8192).toString('base64').replaceAll(/.{76}/g, '$&\r\n')}\r\n`],
    [
      'an envelope of JSON',
      base64(JSON.stringify({ v: 1, at: 1_764_119_000_000, iv: 'qw==', data: bytesOfText.toString('hex') })),
    ],
    ['an envelope of base64', base64(bytesOfText.toString('base64'))],
    ['an envelope of hexadecimal digits', base64(randomBytes(100).toString('hex'))],
  ])('takes %s, and answers it as it was given', async (_, encrypted_data) => {
    const { box, at } = shared
    const { status, body } = await box.call('POST', at, card({ encrypted_data }))
    expect(status).toBe(201)
    expect((await box.call('POST', `/v1/cards/${body.id}/reveal`)).body['encrypted_data']).toBe(encrypted_data)
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

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
