import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { decryptCard, encryptCard, newCardKey } from '../../clients/typescript/src/index.ts'
import { openAppliance } from '../support/appliance.ts'
import { clientOf } from './support.ts'

const { box, close } = await openAppliance()
afterAll(close)

const details = { number: '4242424242424242', exp_month: 8, exp_year: 2039, security_code: '123' }

test('a card is encrypted before it is sent, and read again from what the box reveals', async () => {
  const cardKey = newCardKey()
  const sent: string[] = []
  const client = clientOf(box, {
    cardKey,
    fetch: (url, init) => {
      sent.push(JSON.stringify(init?.body))
      return fetch(url, init)
    },
  })
  const { id } = await client.identities.create()
  const card = await client.cards.create(id, {
    ...details,
    cvv: '987',
    holder: 'Ada Lovelace',
    label: 'travel',
    budget: { amount: 5000, currency: 'usd', period: 'monthly' },
  })
  expect(card).toMatchObject({
    last4: '4242',
    brand: 'visa',
    exp_month: 8,
    exp_year: 2039,
    card_name: 'travel',
    budget_cents: 5000,
  })
  for (const secret of [details.number, '"123"', '987', 'Ada Lovelace', cardKey]) expect(sent.join('\n')).not.toContain(secret)
  const revealed = await client.cards.reveal(card.id, { amount_cents: 1250, purpose: 'train' })
  expect(await decryptCard(cardKey, revealed.encrypted_data)).toEqual({ ...details, cvv: '987', holder: 'Ada Lovelace' })
  expect(await client.cards.limits(card.id)).toMatchObject({ spent_cents: 1250, remaining_cents: 3750 })
})

test('without a card key a number is not sent', async () => {
  const calls: unknown[] = []
  const client = clientOf(box, { fetch: async (...call) => (calls.push(call), fetch(...call)) })
  const card = { ...details, label: 'x', budget_cents: 1 }
  await expect(client.cards.create('ident_x', card)).rejects.toMatchObject({ code: 'no_card_key', param: 'cardKey' })
  expect(calls).toEqual([])
})

test('what was encrypted elsewhere is stored as it is', async () => {
  const client = clientOf(box)
  const { id } = await client.identities.create()
  const cardKey = newCardKey()
  const encrypted_data = await encryptCard(cardKey, details)
  const { id: cardId } = await client.cards.create(id, {
    encrypted_data,
    last4: '4444',
    brand: 'mastercard',
    exp_month: 1,
    exp_year: 2040,
    card_name: 'own',
    budget_cents: 100,
  })
  expect((await client.cards.reveal(cardId)).encrypted_data).toBe(encrypted_data)
})

test('it is AES-256-GCM as the documentation has it: nonce, ciphertext, tag', async () => {
  const key = randomBytes(32)
  const bytes = Buffer.from(await encryptCard(key, { ...details, name: 'Zoë 🎉' }), 'base64')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
  decipher.setAuthTag(bytes.subarray(-16))
  const text = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString()
  expect(JSON.parse(text)).toEqual({ ...details, name: 'Zoë 🎉' })
  const cipher = createCipheriv('aes-256-gcm', key, Buffer.alloc(12, 7))
  const sealed = Buffer.concat([Buffer.alloc(12, 7), cipher.update('{"number":"1"}'), cipher.final(), cipher.getAuthTag()])
  for (const form of ['base64', 'base64url'] as const) {
    expect(await decryptCard(key.toString(form), sealed.toString(form))).toEqual({ number: '1' })
  }
  expect(await encryptCard(key, details)).not.toBe(await encryptCard(key, details))
})

test('another key, changed data and a key of another length are refused', async () => {
  const sealed = await encryptCard(newCardKey(), details)
  await expect(decryptCard(newCardKey(), sealed)).rejects.toMatchObject({ code: 'card_unreadable', cause: expect.anything() })
  await expect(decryptCard(newCardKey(), 'nonsense')).rejects.toMatchObject({ code: 'card_unreadable' })
  for (const key of ['', 'short', randomBytes(16), randomBytes(33)]) {
    await expect(async () => encryptCard(key, details)).rejects.toMatchObject({ code: 'bad_card_key' })
  }
})

test.each([
  ['4111111111111111', 'visa'],
  ['5555555555554444', 'mastercard'],
  ['2223003122003222', 'mastercard'],
  ['378282246310005', 'amex'],
  ['6011111111111117', 'discover'],
  ['3530111333300000', 'jcb'],
  ['30569309025904', 'diners'],
  ['6200000000000005', 'unionpay'],
  ['9999999999999995', 'other'],
])('the number %s is of %s', async (number, brand) => {
  const client = clientOf(box, { cardKey: newCardKey() })
  const { id } = await client.identities.create()
  expect(await client.cards.create(id, { ...details, number, label: 'x', budget_cents: 1 })).toMatchObject({
    brand,
    last4: number.slice(-4),
  })
})
