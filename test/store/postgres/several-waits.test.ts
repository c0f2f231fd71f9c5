import { expect, test } from 'vitest'
import { type Appliance, deliver, message } from '../../support/appliance.ts'
import { severalBoxes } from './boxes.ts'
import { serverOfFile } from './server.ts'

const postgres = serverOfFile()

async function subject(box: Appliance, id: string, since?: string): Promise<string | undefined> {
  const { status, body } = await box.call(
    'GET',
    `/v1/identities/${id}/wait?timeout=1${since === undefined ? '' : `&since=${since}`}`,
  )
  expect(status).toBe(200)
  return body['item']?.subject as string | undefined
}

test('a message that a call to one box was given is not given again by a wait at another, unless it is asked for by its time', async () => {
  const [one, other] = await severalBoxes(postgres())
  const { body: ada } = await one.call('POST', '/v1/identities', { name: 'Ada' })
  const began = new Date(Date.now() - 60_000).toISOString()
  for (const Subject of ['first', 'second'])
    expect(await deliver(one.smtp, { to: ada.email, raw: message({ To: ada.email, Subject }, 'hello') })).toMatch(/^250/)
  expect(await subject(one, ada.id)).toBe('first')
  expect(await subject(other, ada.id)).toBe('second')
  expect(await subject(one, ada.id)).toBeUndefined()
  expect(await deliver(other.smtp, { to: ada.email, raw: message({ To: ada.email, Subject: 'third' }, 'hello') })).toMatch(/^250/)
  expect(await subject(one, ada.id)).toBe('third')
  expect(await subject(other, ada.id)).toBeUndefined()
  expect(await subject(other, ada.id, began)).toBe('first')
  // another caller has not had them
  const { body: key } = await one.call('POST', '/v1/api-keys', { label: 'another', scopes: ['messages:read', 'identities:read'] })
  const { body: got } = await other.call('GET', `/v1/identities/${ada.id}/wait?timeout=1`, undefined, {
    key: key['key'] as string,
  })
  expect(got['item']?.subject).toBe('first')
})
