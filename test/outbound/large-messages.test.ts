import { expect, test, vi } from 'vitest'
import { Composer } from '../../src/outbound/compose/composer.ts'
import { accountKey } from '../support/account-key.ts'
import { appliance } from '../support/appliance.ts'
import { database } from './outgoing.ts'

test('a large message is composed when the one before is stored, also that of another account', async () => {
  const box = await appliance()
  const before: number[] = []
  const compose = Object.getOwnPropertyDescriptor(Composer.prototype, 'compose')!.value as Composer['compose']
  vi.spyOn(Composer.prototype, 'compose').mockImplementation(function count(this: Composer, ...given) {
    before.push(database(box, (db) => db.prepare(`SELECT id FROM emails WHERE direction = 'outbound'`).all()).length)
    return compose.apply(this, given)
  })
  const content = Buffer.alloc(4 * 1024 * 1024, 'text\n').toString('base64')
  const attachments = [{ filename: 'a.txt', content_type: 'text/plain', content }]
  const accounts = await Promise.all(
    [1, 2, 3].map(async () => {
      const key = accountKey(box)
      const { body } = await box.call('POST', '/v1/identities', { name: 'Ada' }, { key })
      return { key, to: [body['email']], path: `/v1/identities/${String(body['id'])}/emails` }
    }),
  )
  const mail = { subject: 'Hi', body_text: 'Hi', attachments }
  const answers = await Promise.all(accounts.map(({ key, path, to }) => box.call('POST', path, { ...mail, to }, { key })))
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
  expect(before).toEqual([0, 1, 2])
})
