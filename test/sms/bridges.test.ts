import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { movable } from '../support/held-clock.ts'
import { says, WebhookSink } from '../support/webhook-sink.ts'

const number = '+4915112345678'
const second = '+4915112345679'
const secret = `whsec_${Buffer.from('a secret of the bridge').toString('base64')}`
const origin = 'https://box.example.com'
const signingKey = 'key-of-the-app'

async function box(kind: 'http' | 'android', more: Record<string, string> = {}) {
  const far = await WebhookSink.start()
  const clock = movable()
  const settings: Record<string, string> =
    kind === 'http'
      ? { URL: `${far.url}/sms`, SECRET: secret, NUMBERS: `${number},${second}` }
      : { URL: far.url, USER: 'sms', PASSWORD: 'of-the-phone', SIGNING_KEY: signingKey, NUMBERS: `${number},${second}` }
  const env = Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [`PILLARBOX_SMS__${kind.toUpperCase()}__${name}`, value]),
  )
  const opened = await appliance(
    { PILLARBOX_SMS__PROVIDER: kind, PILLARBOX_SMS__COUNTRY: 'DE', PILLARBOX_PUBLIC_URL: origin, ...env, ...more },
    clock,
  )
  // the public name of the box is not where the test reaches it
  const near = () => (opened.url = `http://127.0.0.1:${opened.app.httpAddresses.plain!.port}`)
  near()
  const restart = opened.restart.bind(opened)
  opened.restart = () => restart().then(() => void near())
  const { body: ada } = await opened.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
  const get = async (id: string) => (await opened.call('GET', `/v1/identities/${ada.id}/sms/${id}`)).body
  const inbox = async () => (await opened.call('GET', `/v1/identities/${ada.id}/sms?direction=inbound`)).body.data
  const send = async (body: string) =>
    (await opened.call('POST', `/v1/identities/${ada.id}/sms`, { to: '+4917012345678', body })).body
  const post = async (path: string, body: string, headers: Record<string, string>) => {
    const response = await fetch(`${opened.url}${path}`, {
      method: 'POST',
      body,
      headers: { 'Content-Type': 'application/json', ...headers },
    })
    return { status: response.status, body: (await response.json()) as ReturnType<typeof JSON.parse> }
  }
  return { far, clock, opened, ada, get, inbox, send, post }
}

const standard = (id: string, body: string, at: number, key = secret): Record<string, string> => ({
  'webhook-id': id,
  'webhook-timestamp': String(Math.floor(at / 1000)),
  'webhook-signature': new Webhook(key).sign(id, new Date(at), body),
})

test('a bridge gets signed messages, each under its id, until it has taken them; and reports what became of them', async () => {
  const { far, clock, opened, ada, get, send, post } = await box('http')
  expect(ada['phone_number']).toBe(number)
  far.behaviour = says(500)
  const sms = await send('Grüße')
  const [first] = await far.until(1)
  expect(first!.path).toBe('/sms')
  const said = new Webhook(secret).verify(first!.raw, first!.headers as Record<string, string>)
  expect(said).toEqual({ id: sms.id, from: number, to: '+4917012345678', body: 'Grüße' })
  far.behaviour = says(200, {}, JSON.stringify({ provider_id: 'modem-7' }))
  // the attempt has ended before the clock moves
  await opened.settled()
  clock.ahead += 60_000
  await opened.settled()
  const [, again] = await far.until(2)
  expect(again!.raw).toBe(first!.raw)
  await opened.settled()
  expect((await get(sms.id))['status']).toBe('sent')
  expect(await get(sms.id)).toMatchObject({ provider_id: 'modem-7', provider: 'http' })
  const report = JSON.stringify({ id: sms.id, status: 'delivered' })
  const now = Date.now() + clock.ahead
  expect(await post('/sms/http/status', report, standard('r1', report, now))).toEqual({ status: 200, body: { effect: true } })
  expect(await post('/sms/http/status', report, standard('r1', report, now))).toEqual({ status: 200, body: { effect: false } })
  expect(await get(sms.id)).toMatchObject({ status: 'delivered' })
  far.behaviour = says(422, {}, 'no such network')
  const refused = await send('nowhere')
  await opened.settled()
  expect((await get(refused.id))['error']).toMatchObject({ code: 'http_422', message: expect.stringContaining('no such') })
})

test('what a phone or bridge says never tells its secrets', async () => {
  const basic = Buffer.from('sms:of-the-phone').toString('base64')
  for (const [kind, hidden] of [
    ['http', secret],
    ['android', 'of-the-phone'],
    ['android', basic],
  ] as const) {
    const { far, opened, get, send } = await box(kind)
    far.behaviour = says(422, {}, `not with ${hidden} here`)
    const sms = await send('x')
    await opened.settled()
    expect((await get(sms.id))['error']?.message).toContain('not with … here')
    expect(opened.logged.join('')).not.toContain(hidden)
  }
})

test('a bridge hands messages in, once; what it did not sign, or signed long ago, has no effect', async () => {
  const { opened, inbox, post, ada } = await box('http')
  const picture = { content_type: 'image/png\r\nX: y', content: Buffer.from('picture').toString('base64') }
  const text = JSON.stringify({
    id: 'modem-1',
    from: '+4917012345678',
    to: number,
    body: 'Dein Code ist 493817',
    media: [picture],
  })
  const now = Date.now()
  const bad: [string, Record<string, string>][] = [
    [text, {}],
    [text, standard('a', text, now, 'whsec_c29tZWJvZHkgZWxzZQ==')],
    [text, standard('a', text, now - 301_000)],
    [text, standard('a', text, now + 330_000)],
    [text, { ...standard('a', text, now), 'webhook-id': 'b' }],
    [text.replace('493817', '111111'), standard('a', text, now)],
    [text, { ...standard('a', text, now), 'webhook-timestamp': 'now' }],
  ]
  for (const [body, headers] of bad) {
    expect(await post('/sms/http/inbound', body, headers)).toMatchObject({
      status: 403,
      body: { error: { code: 'bad_signature' } },
    })
  }
  expect(await inbox()).toEqual([])
  expect(opened.logged.filter((line) => line.includes('callback rejected'))).toHaveLength(bad.length)
  expect(opened.logged.join('')).not.toContain(secret)
  expect((await post('/sms/http/inbound', text, standard('a', text, now))).body).toEqual({ effect: true })
  expect((await post('/sms/http/inbound', text, standard('b', text, now))).body).toEqual({ effect: false })
  const [sms, ...more] = await inbox()
  expect(more).toEqual([])
  expect(sms).toMatchObject({
    codes: ['493817'],
    media: [{ status: 'kept', size: 7, content_type: 'application/octet-stream' }],
    identity_id: ada.id,
  })
  for (const [body, param] of [
    ['{', undefined],
    ['{}', 'id'],
    [text.replace('"modem-1"', '7'), 'id'],
    [text.replace('modem-1', 'sms_01m8jhbkcbf6c9mz4xx4n51nxb'), 'id'],
    [text.replace('+4917012345678', ' '), 'from'],
    [text.replace('+4917012345678', '\u202eBANK'), 'from'],
    [text.replace('+4917012345678', '\u200b'), 'from'],
    [text.replace(picture.content, '***'), 'media.0.content'],
  ] as const) {
    const told = await post('/sms/http/inbound', body, standard('c', body, now))
    expect([told.status, told.body.error.param]).toEqual([400, param])
  }
  expect((await post('/sms/twilio/inbound', text, {})).status).toBe(404)
  expect((await post('/sms/android/events', text, {})).status).toBe(404)
})

test('the numbers of the settings are given to one identity each, and again once they are free', async () => {
  const { opened, ada } = await box('http')
  const give = async (name: string) => (await opened.call('POST', '/v1/identities', { name, provision_phone: true })).body
  expect(await give('Bob')).toMatchObject({ phone_number: second })
  expect(await give('Cy')).toMatchObject({ error: { status: 409, code: 'no_free_number' } })
  await opened.call('DELETE', `/v1/identities/${ada.id}`)
  await opened.settled()
  expect((await give('Dee'))['phone_number']).toBe(number)
})

const file = (size: number) => ({ content_type: 'image/png', content: Buffer.alloc(size).toString('base64') })

test('what is handed in with a message is no larger than it may be', async () => {
  const { clock, opened, inbox, post } = await box('http', { PILLARBOX_SMS__MEDIA_LIMIT: '1 kB' })
  const text = JSON.stringify({ id: 'm', from: '+4917012345678', to: number, body: 'look', media: [file(1000), file(1001)] })
  await post('/sms/http/inbound', text, standard('m', text, Date.now() + clock.ahead))
  const [sms] = await inbox()
  expect(sms.media).toMatchObject([
    { status: 'kept', size: 1000 },
    { status: 'failed', size: null },
  ])
  const { body } = await opened.call('GET', `/v1/identities/${sms.identity_id}/sms/${sms.id}/media/1`)
  expect((await fetch(body['url'].replace(origin, opened.url))).status).toBe(404)
})

test('who waits for a number of a provider that was given up gets one of the new one', async () => {
  const { opened } = await box('http')
  const { body: bob } = await opened.call('POST', '/v1/identities', { name: 'Bob' })
  await opened.app.stop()
  // as a box leaves it that died while it bought a number
  const database = openStore(join(opened.directory, 'data', 'pillarbox.db'))
  database
    .prepare(
      `INSERT INTO phone_numbers (id, account_id, identity_id, provider, country, status, created_at)
        SELECT 'phone_x', account_id, id, 'twilio', 'US', 'wanted', created_at FROM identities WHERE id = ?`,
    )
    .run(bob.id)
  database.close()
  await opened.restart()
  await opened.settled()
  expect((await opened.call('POST', `/v1/identities/${bob.id}/phone`, {})).body).toMatchObject({ phone_number: second })
})

test('a number of the settings is of the country that was asked for, or none is given', async () => {
  const { opened } = await box('http')
  const { body: bob } = await opened.call('POST', '/v1/identities', { name: 'Bob' })
  const give = (country: string) => opened.call('POST', `/v1/identities/${bob.id}/phone`, { country })
  expect((await give('US')).body).toMatchObject({ error: { status: 400, code: 'no_numbers', param: 'country' } })
  const made = await opened.call('POST', '/v1/identities', { name: 'Cy', provision_phone: true, phone_country: 'FR' })
  expect(made.body).toMatchObject({ error: { status: 400, code: 'no_numbers', param: 'phone_country' } })
  expect((await give('de')).body).toMatchObject({ phone_number: second })
})

test('a STOP lasts for as long as the number is ours, whoever has it', async () => {
  const { opened, ada, send, post } = await box('http')
  // as a modem may write it, too
  for (const [id, from] of [
    ['a', '+4917012345678'],
    ['b', '004917012345678'],
    ['c', '017012345678'],
  ] as const) {
    const text = JSON.stringify({ id, from, to: number, body: 'STOP' })
    expect((await post('/sms/http/inbound', text, standard(id, text, Date.now()))).body).toEqual({ effect: true })
    expect(await send('news')).toMatchObject({ error: { code: 'recipient_opted_out' } })
    await opened.call('DELETE', `/v1/identities/${ada.id}/phone`)
    const again = async () => (await opened.call('POST', `/v1/identities/${ada.id}/phone`, {})).body
    await opened.settled()
    expect((await opened.call('GET', `/v1/identities/${ada.id}/events?type=phone.released`)).body.data.length).toBe(
      id.charCodeAt(0) - 96,
    )
    expect(await again()).toMatchObject({ phone_number: number })
    expect(await send('news')).toMatchObject({ error: { code: 'recipient_opted_out' } })
    const back = JSON.stringify({ id: `${id}2`, from, to: number, body: 'START' })
    await post('/sms/http/inbound', back, standard(id, back, Date.now()))
    expect(await send('news')).toMatchObject({ status: 'queued' })
  }
})

const signed = (body: string, at: number, key = signingKey): Record<string, string> => {
  const timestamp = String(Math.floor(at / 1000))
  return { 'X-Timestamp': timestamp, 'X-Signature': createHmac('sha256', key).update(`${body}${timestamp}`).digest('hex') }
}

const event = (name: string, payload: object): string =>
  JSON.stringify({ deviceId: 'ffffffffceb0b1db', event: name, id: 'Ey6ECgOkVVFjz3CL48B8C', payload, webhookId: 'pillarbox' })

test('a phone is told where to report, sends by the right SIM card, and reports what became of it', async () => {
  const { far, clock, opened, get, send, post } = await box('android')
  const hooks = await far.until(4, ({ path }) => path === '/webhooks')
  expect(hooks.map(({ body }) => body.event).toSorted()).toEqual(['sms:delivered', 'sms:failed', 'sms:received', 'sms:sent'])
  expect(hooks[0]!.body).toMatchObject({ url: `${origin}/sms/android/events` })
  expect(hooks[0]!.headers['authorization']).toBe(`Basic ${btoa('sms:of-the-phone')}`)
  far.paths.set('/messages', (response, { raw }) => {
    const { id } = JSON.parse(raw) as { id: string }
    response.writeHead(202, { 'Content-Type': 'application/json' }).end(JSON.stringify({ id, state: 'Pending', recipients: [] }))
  })
  const sms = await send('Hallo')
  const [posted] = await far.until(1, ({ path }) => path === '/messages')
  expect(JSON.parse(posted!.raw)).toEqual({
    id: sms.id,
    textMessage: { text: 'Hallo' },
    phoneNumbers: ['+4917012345678'],
    withDeliveryReport: true,
    simNumber: 1,
  })
  await opened.settled()
  expect((await get(sms.id))['status']).toBe('sent')
  const report = event('sms:delivered', {
    messageId: sms.id,
    phoneNumber: '+4917012345678',
    deliveredAt: '2026-11-20T10:00:00.000+01:00',
  })
  expect((await post('/sms/android/events', report, signed(report, Date.now()))).body).toEqual({ effect: true })
  expect(await get(sms.id)).toMatchObject({ status: 'delivered' })
  const other = await send('Hallo?')
  await opened.settled()
  expect((await get(other.id))['status']).toBe('sent')
  const failed = event('sms:failed', { messageId: other.id, phoneNumber: '+4917012345678', reason: 'RESULT_ERROR_NO_SERVICE' })
  await post('/sms/android/events', failed, signed(failed, Date.now()))
  expect(await get(other.id)).toMatchObject({ status: 'failed', error: { message: 'RESULT_ERROR_NO_SERVICE' } })
  far.paths.set('/messages', (response) => void response.destroy())
  const lost = await send('Hallo!')
  await opened.settled()
  expect((await get(lost.id))['status']).toBe('unknown')
  clock.ahead += 86_400_000
  await opened.restart()
  await opened.settled()
  expect(far.received.filter(({ path }) => path === '/messages')).toHaveLength(3)
})

test('what came to a SIM card that the settings do not name is nobody’s', async () => {
  const { opened, inbox, post } = await box('android')
  const told = async (simNumber: number | null, message: string) => {
    const text = event('sms:received', {
      messageId: 'x',
      message,
      phoneNumber: '+4917012345678',
      simNumber,
      receivedAt: '2026-11-20',
    })
    return (await post('/sms/android/events', text, signed(text, Date.now()))).body
  }
  expect(await told(3, 'private')).toEqual({ effect: false })
  expect(await inbox()).toEqual([])
  expect(opened.logged.join('')).toContain('SIM card')
  expect(opened.logged.join('')).not.toContain('private')
  expect(await told(null, 'to the first')).toEqual({ effect: true })
  expect(await told(1, 'to the first, again')).toEqual({ effect: true })
})

test('a phone that was off, or forgot, is told within the hour where to report', async () => {
  const { far, opened } = await box('android')
  await far.until(4, ({ path }) => path === '/webhooks')
  const jobs = opened.app.jobs.filter(({ name }) => name === 'subscribe-to-sms')
  expect(jobs.map(({ schedule }) => schedule)).toEqual([expect.stringMatching(/^\d+ \* \* \* \*$/)])
  far.behaviour = says(503)
  await jobs[0]!.run()
  expect(opened.logged.join('')).toContain('callbacks of the SMS provider could not be registered')
  far.behaviour = says(200, {}, '{}')
  const before = far.received.length
  await jobs[0]!.run()
  expect(far.received.slice(before).map(({ body }) => body.event)).toHaveLength(4)
})

test('a phone hands messages in, with their codes; a repeat, a forgery and an old call have no effect', async () => {
  const { opened, inbox, post } = await box('android')
  const payload = {
    messageId: 'abc',
    message: 'Dein Code ist 493817',
    phoneNumber: '017012345678',
    simNumber: 1,
    receivedAt: '2026-11-20T10:00:00.000+01:00',
  }
  const text = event('sms:received', payload)
  const now = Date.now()
  for (const [body, headers] of [
    [text, {}],
    [text, signed(text, now, 'another key')],
    [text, signed(text, now - 301_000)],
    [text.replace('493817', '111111'), signed(text, now)],
    [text, { ...signed(text, now), 'X-Timestamp': '0' }],
  ] as [string, Record<string, string>][]) {
    expect(await post('/sms/android/events', body, headers)).toMatchObject({
      status: 403,
      body: { error: { code: 'bad_signature' } },
    })
  }
  expect(opened.logged.filter((line) => line.includes('callback rejected'))).toHaveLength(5)
  expect((await post('/sms/android/events', text, signed(text, now))).body).toEqual({ effect: true })
  expect((await post('/sms/android/events', text, signed(text, now + 1000))).body).toEqual({ effect: false })
  // the app gives the same text the same id: a code that comes again is another message all the same
  const later = event('sms:received', { ...payload, receivedAt: '2026-11-20T10:05:00.000+01:00' })
  expect((await post('/sms/android/events', later, signed(later, now))).body).toEqual({ effect: true })
  const messages = await inbox()
  expect(messages).toHaveLength(2)
  expect(messages[0]).toMatchObject({ from: '+4917012345678', to: number, codes: ['493817'], provider: 'android' })
  const ping = event('system:ping', { health: {} })
  expect((await post('/sms/android/events', ping, signed(ping, now))).body).toEqual({ effect: false })
})

test('who has signed nothing may send 64 KiB, but for messages with pictures where a bridge hands them in', async () => {
  const large = JSON.stringify({ padding: 'x'.repeat(64 * 1024) })
  const refusals = async (post: Awaited<ReturnType<typeof box>>['post'], paths: string[]): Promise<unknown[]> =>
    Promise.all(paths.map(async (path) => (await post(path, large, {})).body.error.code))
  const bridge = await box('http')
  expect(await refusals(bridge.post, ['/sms/http/inbound', '/sms/http/status', '/sms/android/events'])).toEqual([
    'bad_signature',
    'body_too_large',
    'body_too_large',
  ])
  const phone = await box('android')
  expect(await refusals(phone.post, ['/sms/http/inbound', '/sms/android/events'])).toEqual(['body_too_large', 'body_too_large'])
})

test('what a bridge signed is not believed to be small: a body too deep or of too many tokens is refused', async () => {
  const { post, inbox } = await box('http')
  for (const [code, body] of [
    ['too_deep', `{"id":${'['.repeat(40)}${']'.repeat(40)}}`],
    ['too_many_tokens', `{"id":[${'{},'.repeat(10_000)}{}]}`],
  ] as const) {
    const told = await post('/sms/http/inbound', body, standard(code, body, Date.now()))
    expect(told).toMatchObject({ status: 400, body: { error: { code } } })
  }
  expect(await inbox()).toEqual([])
})

test.each(['http', 'android'] as const)(
  'a call back of %s without a Content-Type is refused as any other without a signature',
  async (kind) => {
    const { opened } = await box(kind)
    const path = kind === 'http' ? '/sms/http/status' : '/sms/android/events'
    const answers: [number, string][] = []
    const types: Record<string, string>[] = [{ 'Content-Type': 'application/json' }, {}, { 'Content-Type': 'nonsense' }]
    for (const headers of types) {
      // octets, to which fetch adds no type
      const response = await fetch(`${opened.url}${path}`, {
        method: 'POST',
        body: Buffer.from('{}'),
        headers,
      })
      const { error } = (await response.json()) as { error: { code: string } }
      answers.push([response.status, error.code])
    }
    expect(answers[0]![0]).toBeLessThan(500)
    expect(answers).toEqual([answers[0], answers[0], answers[0]])
  },
)
