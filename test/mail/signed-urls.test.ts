import { expect, test } from 'vitest'
import { appliance, deliver } from '../support/appliance.ts'
import { letter } from '../contract/estate.ts'

test('a signed URL opens what it was signed for, for a quarter of an hour, and no byte of it can be changed', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({ PILLARBOX_HTTP__DOCUMENT_RATE_LIMIT: '0' }, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada.email, raw: letter('Ada') })
  await deliver(box.smtp, { to: ada.email, raw: letter('Other') })
  const { body: list } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  const [other, email] = list.data.map(({ id }) => id as string)
  const { body: record } = await box.call('GET', `/v1/identities/${ada.id}/emails/${email}/attachments/0`)
  const url = new URL(record.url)
  expect(await open(url)).toBe(200)
  expect(record.expires_at).toBe('2026-11-20T10:15:00.000Z')

  const signature = url.searchParams.get('signature')!
  const wrong: string[] = [
    '',
    'AAAA',
    `${signature}A`,
    `${signature}=`,
    signature.slice(0, -1),
    signature.toUpperCase(),
    ` ${signature}`,
  ]
  for (let at = 0; at < signature.length; at += 1) {
    const instead = signature[at] === 'A' ? 'B' : 'A'
    wrong.push(`${signature.slice(0, at)}${instead}${signature.slice(at + 1)}`)
  }
  for (const text of wrong) {
    const changed = new URL(url)
    changed.searchParams.set('signature', text)
    expect([text, await open(changed)]).toEqual([text, text === '' ? 400 : 403])
  }
  for (const expires of ['9999999999', '0', '1', String(Number(url.searchParams.get('expires')) + 1)]) {
    const changed = new URL(url)
    changed.searchParams.set('expires', expires)
    expect(await open(changed)).toBe(403)
  }
  for (const expires of ['-1', '1e9', '', 'x', '9'.repeat(13)]) {
    const changed = new URL(url)
    changed.searchParams.set('expires', expires)
    expect(await open(changed)).toBe(400)
  }
  expect(await open(record.url.replace(email!, other!))).toBe(403)
  expect(await open(record.url.replace('/0?', '/1?'))).toBe(403)
  expect(await open(String(record.url).split('?')[0]!)).toBe(400)
  expect(await open(`${record.url}&x=1`)).toBe(400)
  expect(await open(`${record.url}&signature=${signature}`)).toBe(400)

  const head = await fetch(url, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, String(record.size), ''])
  expect(head.headers.get('referrer-policy')).toBe('no-referrer')
  clock.time += 15 * 60_000 - 1
  expect(await open(url)).toBe(200)
  clock.time += 1
  expect((await box.call('GET', record.url, undefined, { key: null })).body.error).toMatchObject({
    status: 403,
    code: 'url_expired',
  })
})

test('a signed URL dies with its message and with its identity, and is worth nothing on another box', async () => {
  const box = await appliance()
  const stranger = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada.email, raw: letter('Ada') })
  const { body: list } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  const { body: record } = await box.call('GET', `/v1/identities/${ada.id}/emails/${list.data[0].id}/attachments/0`)
  expect((await fetch(record.url.replace(box.url, stranger.url))).status).toBe(403)
  await box.restart()
  const same = record.url.replace(/^http:\/\/[^/]+/, box.url) as string
  expect((await fetch(same)).status).toBe(200)
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  expect((await fetch(same)).status).toBe(404)
})

async function open(url: string | URL): Promise<number> {
  return (await fetch(url)).status
}
