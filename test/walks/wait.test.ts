import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'

test('a wait is answered by the message that comes, with its code', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const waiting = box.call('GET', `/v1/identities/${ada.id}/wait?channel=email&from=sender&subject_contains=CODE&timeout=120`)
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Other news' }, 'Nothing here\n') })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Your code' }, 'Your code is 204060\n') })
  const { body } = await waiting
  expect(body).toMatchObject({ timed_out: false, codes: ['204060'], item: { subject: 'Your code', type: 'email' } })
  expect(body.since).toMatch(/^evt_/)

  const { body: next } = await box.call('GET', `/v1/identities/${ada.id}/wait?since=${body.since}&timeout=0`)
  expect(next).toMatchObject({ timed_out: true, item: null })
})

test('a wait without since finds what came just before it, once', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'First' }, 'One\n') })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Second' }, 'Two\n') })
  const subjects: (string | undefined)[] = []
  for (let turn = 0; turn < 3; turn += 1) {
    const { body } = await box.call('GET', `/v1/identities/${ada.id}/wait?timeout=0`)
    subjects.push(body.item?.subject)
  }
  expect(subjects).toEqual(['First', 'Second', undefined])
})

test('no message is missed between the look and the wait', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  let since = new Date(Date.now() - 1000).toISOString()
  const seen: string[] = []
  const sending = (async () => {
    for (let index = 0; index < 20; index += 1) {
      await deliver(box.smtp, { to: ada.email, raw: message({ Subject: `Number ${index}` }, 'x\n') })
    }
  })()
  while (seen.length < 20) {
    const { body } = await box.call('GET', `/v1/identities/${ada.id}/wait?since=${since}&timeout=120`)
    expect(body.timed_out).toBe(false)
    seen.push(body.item.subject)
    since = body.since
  }
  await sending
  expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => `Number ${index}`))
})

test('a wait ends when the identity is deleted', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const waiting = box.call('GET', `/v1/identities/${ada.id}/wait?timeout=120`)
  await new Promise((resolve) => setTimeout(resolve, 50))
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  expect((await waiting).status).toBe(404)
})
