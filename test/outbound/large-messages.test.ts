import { expect, test, vi } from 'vitest'
import { Composer } from '../../src/outbound/compose/composer.ts'
import { accountKey } from '../support/account-key.ts'
import { appliance } from '../support/appliance.ts'
import { database } from './outgoing.ts'

const file = Buffer.alloc(4 * 1024 * 1024, 'text\n').toString('base64')

test.each([
  ['attachments', { body_text: 'Hi', attachments: [{ filename: 'a.txt', content_type: 'text/plain', content: file }] }],
  ['a text', { body_text: 'é'.repeat(1_000_000) }],
  ['HTML', { body_html: `<p>${'é'.repeat(1_000_000)}` }],
])('a large message of %s is composed when the one before is stored, also that of another account', async (_, large) => {
  const box = await appliance()
  const before: number[] = []
  const compose = Object.getOwnPropertyDescriptor(Composer.prototype, 'compose')!.value as Composer['compose']
  vi.spyOn(Composer.prototype, 'compose').mockImplementation(function count(this: Composer, ...given) {
    before.push(database(box, (db) => db.prepare(`SELECT id FROM emails WHERE direction = 'outbound'`).all()).length)
    return compose.apply(this, given)
  })
  const accounts = await Promise.all(
    [1, 2, 3].map(async () => {
      const key = accountKey(box)
      const { body } = await box.call('POST', '/v1/identities', { name: 'Ada' }, { key })
      return { key, to: [body['email']], path: `/v1/identities/${String(body['id'])}/emails` }
    }),
  )
  const mail = { subject: 'Hi', ...large }
  const answers = await Promise.all(accounts.map(({ key, path, to }) => box.call('POST', path, { ...mail, to }, { key })))
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
  expect(before).toEqual([0, 1, 2])
})
