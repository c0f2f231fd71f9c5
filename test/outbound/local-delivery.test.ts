import { expect, test, vi } from 'vitest'
import { Examiner } from '../../src/mail/workers/examiner.ts'
import { usage } from '../accounts/limited.ts'
import { appliance } from '../support/appliance.ts'

const long = 'A line of words that are many and say "little".\n'.repeat(16_000)

test('a long message to many on this box is examined once for those that wait, and its events take the room of one', async () => {
  const examine = vi.spyOn(Examiner.prototype, 'examine')
  const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '0' })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const path = `/v1/identities/${ada.id}`
  const to = Array.from({ length: 20 }, (_, number) => (ada['email'] as string).replace('@', `+${number}@`))
  const { body: sent } = await box.call('POST', `${path}/emails`, { to, subject: 'Long', body_text: long })
  await vi.waitFor(async () => expect((await box.call('GET', `${path}/emails/${sent.id}`)).body['status']).toBe('delivered'), {
    timeout: 100_000,
    interval: 100,
  })
  const { body: list } = await box.call('GET', `${path}/emails?limit=100`)
  expect(list.data.map((email) => email['to'] as string).toSorted()).toEqual(to.toSorted())
  const { body: copy } = await box.call('GET', `${path}/emails/${list.data[0].id}`)
  expect(copy['body_text']).toBe((await box.call('GET', `${path}/emails/${sent.id}`)).body['body_text'])

  // one to send it, and at most half as many as recipients
  expect(examine.mock.calls.length).toBeLessThanOrEqual(11)

  const { body: identity } = await box.call<{ storage: { used: number } }>('GET', path)
  expect((await usage(box, 'storage_bytes')) - identity.storage.used).toBeLessThan(1024 * 1024)

  const { body: events } = await box.call('GET', `${path}/events?type=email.delivered&limit=1`)
  const { data } = events.data[0]!
  expect(data).toMatchObject({ id: sent.id, body_html: null, body_truncated: true, delivery: { status: 'delivered' } })
  expect(Buffer.byteLength(JSON.stringify(data['body_text']))).toBeGreaterThan(250 * 1024)
  expect(copy['body_text']).toContain(data['body_text'])
})
