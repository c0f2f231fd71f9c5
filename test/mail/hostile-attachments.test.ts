import { expect, test } from 'vitest'
import { appliance, deliver } from '../support/appliance.ts'
import { withFiles } from '../support/documents.ts'
import { hostile } from '../support/hostile-documents.ts'

test.for(hostile.filter(({ isLong }) => !isLong).map((one) => [one.name, one] as const))(
  '%s is refused or cut, and the next is read',
  async ([, { content, answer }]) => {
    const box = await appliance()
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const file = { name: 'file', type: 'application/octet-stream', content: await content() }
    await deliver(box.smtp, { to: ada.email, raw: withFiles(file, { name: 'a.txt', type: 'text/plain', content: 'hello' }) })
    const { body: list } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
    const path = `/v1/identities/${ada.id}/emails/${list.data[0].id}/attachments`
    const [{ status, body }, { body: after }] = await Promise.all([
      box.call('GET', `${path}/0/text`),
      box.call('GET', `${path}/1/text`),
    ])
    expect([status, body.error?.['code'] ?? body['format']]).toEqual([answer.startsWith('attachment_') ? 400 : 200, answer])
    expect(JSON.stringify(body)).not.toMatch(/root:|lollol|node_modules/)
    expect(after).toMatchObject({ text: 'hello' })
  },
)
