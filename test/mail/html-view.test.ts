import { expect, test } from 'vitest'
import { deliver, message } from '../support/appliance.ts'
import { day, kept } from '../ops/retention/box.ts'

const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const html = '<p>Logo: <img src="cid:logo@x"><img src="cid:script@x"><img src="cid:none@x"></p>'

const parts = [
  `Content-Type: text/html\n\n${html}`,
  `Content-Type: image/png\nContent-ID: <logo@x>\nContent-Transfer-Encoding: base64\n\n${picture}`,
  'Content-Type: image/svg+xml\nContent-ID: <script@x>\n\n<svg onload="alert(1)"/>',
]

const letter = message(
  { Subject: 'With a logo', 'Content-Type': 'multipart/related; boundary=b' },
  `${parts.map((part) => `--b\n${part}\n`).join('')}--b--\n`,
)

test('images of the message are in its page, drawings that could run are not; nor any more once its octets went', async () => {
  const { box, at, ada, clock, job } = await kept({ PILLARBOX_RETENTION__RAW: '7 d' })
  await deliver(box.smtp, { to: ada.email, raw: letter })
  const { body } = await box.call('GET', `${at}/emails`)
  const id = body.data[0]!['id']
  const shown = await box.call<string>('GET', `${at}/emails/${id}/html`)
  expect(shown.body).toContain(`<p>Logo: <img src="data:image/png;base64,${picture}"><img><img></p>`)
  clock.advance(8 * day)
  await job('let-go-of-raw-mail')
  const later = await box.call<string>('GET', `${at}/emails/${id}/html`)
  expect([later.status, later.body]).toEqual([200, expect.stringContaining('<p>Logo: <img><img><img></p>')])
})

test('an e-mail without HTML has no such page', async () => {
  const { box, at, mail } = await kept()
  const id = await mail('Plain')
  expect((await box.call('GET', `${at}/emails/${id}/html`)).status).toBe(404)
  expect((await box.call('GET', `${at}/emails/${id}/html?remote=perhaps`)).body.error['param']).toBe('remote')
})

test('an image that is named again and again is written a few times, and then no more', async () => {
  const { box, at, ada } = await kept()
  const large = Buffer.alloc(1024 * 1024)
    .toString('base64')
    .replace(/.{76}/g, '$&\n')
  const named = '<img src="cid:large@x">\n'.repeat(1500)
  const often = [
    `Content-Type: text/html\n\n${named}`,
    `Content-Type: image/png\nContent-ID: <large@x>\nContent-Transfer-Encoding: base64\n\n${large}`,
  ]
  const raw = message(
    { Subject: 'Often', 'Content-Type': 'multipart/related; boundary=b' },
    `${often.map((part) => `--b\n${part}\n`).join('')}--b--\n`,
  )
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250 /)
  const { body } = await box.call('GET', `${at}/emails`)
  const shown = await box.call<string>('GET', `${at}/emails/${body.data[0]!['id']}/html`)
  expect(shown.status).toBe(200)
  expect(shown.body.length).toBeLessThan(9 * 1024 * 1024)
  expect(shown.body.match(/<img src="data:/g)).toHaveLength(5)
  expect(shown.body.match(/<img/g)).toHaveLength(1500)
})
