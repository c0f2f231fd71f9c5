import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'

test('a purged message is gone from lists, search, threads, the log and the disk', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const raw = message({ Subject: 'Confidential', 'Message-ID': '<secret@x.test>' }, 'The sesame word is xyzzyplugh\n')
  await deliver(box.smtp, { to: [ada.email, bob.email], raw })
  const { body: list } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  const { body: others } = await box.call('GET', `/v1/identities/${bob.id}/emails`)

  await box.call('DELETE', `/v1/identities/${ada.id}/emails/${list.data[0].id}?purge=true`)
  for (const path of [
    'emails',
    'emails?direction=all&duplicates=true',
    'emails/search?query=xyzzyplugh',
    'threads',
    'messages',
  ]) {
    const { body } = await box.call('GET', `/v1/identities/${ada.id}/${path}`)
    expect([path, body.data]).toEqual([path, []])
  }
  const { body: events } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.received`)
  expect(events.data).toMatchObject([{ event: 'email.received', data: { id: list.data[0].id, deleted: true } }])
  expect(JSON.stringify(events)).not.toMatch(/xyzzyplugh|Confidential/)
  const { body: waited } = await box.call('GET', `/v1/identities/${ada.id}/wait?timeout=0&subject_contains=conf`)
  expect(waited.item).toBeNull()

  const { body: kept } = await box.call('GET', `/v1/identities/${bob.id}/emails/${others.data[0].id}`)
  expect(kept.body_text).toContain('xyzzyplugh')
  await box.call('DELETE', `/v1/identities/${bob.id}/emails/${others.data[0].id}?purge=true`)
  await box.app.stop()
  const database = openStore(join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db'), { readOnly: true })
  expect(database.prepare('SELECT count(*) AS n FROM blobs').get()).toMatchObject({ n: 0 })
  expect(database.prepare('SELECT sum(stored_bytes) AS n FROM identities').get()).toMatchObject({ n: 0 })
  database.close()
})
