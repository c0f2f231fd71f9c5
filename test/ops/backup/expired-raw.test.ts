import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../../support/appliance.ts'
import { movable } from '../../support/held-clock.ts'
import { pillarbox, started } from './command.ts'

test('a backup of a box whose raw mail has expired is sound, and is restored', async () => {
  const clock = movable()
  const box = await appliance({ PILLARBOX_RETENTION__RAW: '7 d' }, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const raw = message({ To: ada.email, Subject: 'old' }, 'Good morning\n')
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250/)
  clock.ahead = 8 * 86_400_000
  await box.app.jobs.find(({ name }) => name === 'let-go-of-raw-mail')!.run()
  const file = join(box.directory, 'backup.tar')
  expect(await pillarbox(box, 'backup', file)).toMatchObject({ status: 0 })
  expect(await pillarbox(box, 'verify', file)).toMatchObject({ status: 0, errors: '' })
  const elsewhere = { ...box, env: { ...box.env, PILLARBOX_DATA_DIR: join(box.directory, 'other') } }
  const key = join(box.directory, 'data-keys', 'master.key')
  expect(await pillarbox(elsewhere, 'restore', file, '--master-key', key)).toMatchObject({ status: 0 })
  const other = await started(elsewhere.env.PILLARBOX_DATA_DIR, {}, clock)
  const { body } = await other.call('GET', `/v1/identities/${ada.id}/emails`)
  const { status, body: refused } = await other.call('GET', `/v1/identities/${ada.id}/emails/${body.data[0].id}/raw`)
  expect([body.data[0].subject, status, refused.error['code']]).toEqual(['old', 404, 'raw_expired'])
})
