import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Appliance, openAppliance } from '../support/appliance.ts'

let box: Appliance
let close: () => Promise<void>
let path: string
let original: string
beforeAll(async () => {
  ;({ box, close } = await openAppliance())
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  path = `/v1/identities/${ada.id}/emails`
  const { body: sam } = await box.call('POST', '/v1/identities', { name: 'Sam' })
  await box.call('POST', `/v1/identities/${sam.id}/emails`, { to: ada.email, subject: 'Lunch?', body_text: 'At noon?' })
  await box.settled()
  original = (await box.call('GET', path)).body.data[0].id
})
afterAll(() => close?.())

const to = 'abuse@pillarbox.test'

const texts: [string, string][] = [
  ['no line end', 'Hello.'],
  ['a line end', 'Hello.\n'],
  ['several line ends', 'Hello.\n\n\n'],
  ['CRLF', 'One.\r\nTwo.\r\n'],
  ['CRLF and no last one', 'One.\r\nTwo.'],
  ['lone CR', 'One.\rTwo.\r'],
  ['all line ends', 'One.\rTwo.\nThree.\r\n\r\rFour.'],
  ['spaces at the ends of lines', 'One.  \nTwo.\t\n  '],
  ['spaces before', '\n\n   Hello.'],
  ['nothing but white space', ' \r\n '],
  ['nothing', ''],
  ['a signature', 'Hello.\n-- \nAda\n'],
  ['lines that begin like SMTP and mbox', '.\n..\nFrom here\n>From there\n'],
  ['lines longer than SMTP takes', `${'a'.repeat(3000)}\r\n${'word '.repeat(400)}`],
  ['Unicode in any normal form', 'é e\u0301 京都 👩‍👩‍👧 \u202e \ufeff \u00a0 ﬁ\u2028\u2029\u0085'],
  ['what looks encoded', '=3D =?utf-8?q?x?= &amp; <b>\n'],
]

describe.each(texts)('a text with %s comes back as it was given', (_, text) => {
  test('when it is sent, by both names, and read again', async () => {
    for (const name of ['body_text', 'body']) {
      const { status, body: sent } = await box.call('POST', path, { to, [name]: text })
      expect([status, sent['body_text']]).toEqual([201, text])
      expect((await box.call('GET', `${path}/${sent['id']}`)).body['body_text']).toBe(text)
    }
    const { body: list } = await box.call('GET', `${path}?direction=outbound&include=body&limit=1`)
    expect(list.data[0].body_text).toBe(text)
    const { body: events } = await box.call('GET', '/v1/events?types=email.queued&limit=1')
    expect(events.data[0].data.body_text).toBe(text)
  })

  test('when it is scheduled, also once it is sent', async () => {
    const send_at = new Date(Date.now() + 3_600_000).toISOString()
    const { body: later } = await box.call('POST', path, { to, body_text: text, send_at })
    expect([later['status'], later['body_text']]).toEqual(['scheduled', text])
    const { body: moved } = await box.call('PATCH', `${path}/${later['id']}`, {
      send_at: new Date(Date.now() + 7_200_000).toISOString(),
    })
    expect(moved['body_text']).toBe(text)
  })

  test('when it answers or forwards: alone without a quote, else before it', async () => {
    const { body: alone } = await box.call('POST', `${path}/${original}/reply`, { body_text: text, quote: false })
    expect(alone['body_text']).toBe(text)
    const { body: whole } = await box.call('POST', `${path}/${original}/forward`, { to, body_text: text, as_attachment: true })
    expect(whole['body_text']).toBe(text)
    const quoted = await box.call('POST', `${path}/${original}/reply`, { body_text: text })
    const forwarded = await box.call('POST', `${path}/${original}/forward`, { to, body_text: text })
    for (const { body } of [quoted, forwarded]) expect(body['body_text'].slice(0, text.length)).toBe(text)
    expect(quoted.body['body_text'].slice(text.length)).toMatch(/^\n{0,2}On .* wrote:\n> At noon\?\n$/)
  })
})

test('what is sent on the wire has CRLF, and the recipient on the box reads it with its line ends', async () => {
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const { body: sent } = await box.call('POST', path, { to: bob.email, subject: 'Ends', body_text: 'One.\rTwo.\nThree.' })
  const source = await fetch(`${box.url}${path}/${sent['id']}/raw`, { headers: { Authorization: `Bearer ${box.key}` } })
  expect(await source.text()).toMatch(/\r\n\r\nOne\.\r\nTwo\.\r\nThree\.\r\n$/)
  await box.settled()
  const { body: list } = await box.call('GET', `/v1/identities/${bob.id}/emails?include=body`)
  expect(list.data).toMatchObject([{ subject: 'Ends', body_text: 'One.\nTwo.\nThree.\n' }])
})

test('of control characters only tabs and line ends are kept, as everywhere', async () => {
  const { body: sent } = await box.call('POST', path, { to, body_text: 'ab\u0007\u001bc\td\r\n' })
  expect(sent['body_text']).toBe('abc\td\r\n')
})
