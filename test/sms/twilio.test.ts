import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, onTestFinished, test } from 'vitest'
import { accountKey } from '../support/account-key.ts'
import { account, announced, library, listed, refuses, token } from '../support/twilio-stub.ts'
import { inbox, origin, twilioBox as box } from './twilio-box.ts'

const signed = (one: Record<string, string>, key = token, url = `${origin}/sms/twilio/inbound`) =>
  library.getExpectedTwilioSignature(key, url, one)

test('a number is bought under the name of its intent, with our callback; it goes back when the identity goes', async () => {
  const { stub, opened, ada } = await box()
  const [number] = [...stub.numbers.values()]
  expect(number).toMatchObject({ phone_number: ada['phone_number'], sms_url: `${origin}/sms/twilio/inbound` })
  expect(number!.friendly_name).toMatch(/^phone_/)
  expect(opened.logged.join('')).toContain('30038')
  stub.next('DELETE', refuses(500, 20500, 'Internal Server Error'))
  expect((await opened.call('DELETE', `/v1/identities/${ada.id}`)).status).toBe(200)
  await opened.settled()
  expect(stub.asked.filter(({ method }) => method === 'DELETE').length).toBe(1)
  expect(stub.numbers.size).toBe(1)
})

test('a release is tried until it succeeds, and one that is gone already has succeeded', async () => {
  const { stub, clock, opened, ada } = await box()
  const events = async () => (await opened.call('GET', `/v1/identities/${ada.id}/events`)).body.data.map(({ type }) => type)
  for (let turn = 0; turn < 3; turn += 1) stub.next('DELETE', refuses(503, 20503, 'Service Unavailable'))
  await opened.call('DELETE', `/v1/identities/${ada.id}/phone`)
  for (let tries = 1; tries <= 3; tries += 1) {
    await opened.settled()
    expect(stub.asked.filter(({ method }) => method === 'DELETE').length).toBe(tries)
    expect(stub.numbers.size).toBe(1)
    clock.ahead += 2 * 3_600_000
  }
  await opened.settled()
  expect(stub.numbers.size).toBe(0)
  expect(await events()).toContain('phone.released')
  await opened.call('POST', `/v1/identities/${ada.id}/phone`, {})
  stub.numbers.clear()
  await opened.call('DELETE', `/v1/identities/${ada.id}/phone`)
  await opened.settled()
  expect((await events()).filter((type) => type === 'phone.released').length).toBe(2)
})

test('when Twilio sells nothing, nothing is half made', async () => {
  const { stub, opened } = await box()
  const bought = stub.numbers.size
  stub.next('POST /2010-04-01/Accounts', refuses(400, 21422, 'The phone number is not available'))
  const refused = await opened.call('POST', '/v1/identities', { name: 'Bob', provision_phone: true })
  expect(refused.body).toMatchObject({ error: { status: 500, type: 'internal_error', code: 'sms_provider_error' } })
  expect(refused.body.error['message']).toContain('not available')
  const nowhere = await opened.call('POST', '/v1/identities', { name: 'Bob', provision_phone: true, phone_country: 'AQ' })
  expect(nowhere.body).toMatchObject({ error: { status: 400, code: 'no_numbers', param: 'phone_country' } })
  expect((await opened.call('GET', '/v1/identities')).body.data).toHaveLength(1)
  expect((await opened.call('POST', '/v1/identities', { name: 'ada', provision_phone: true })).body).toMatchObject({
    error: { status: 409 },
  })
  expect(stub.numbers.size).toBe(bought)
})

test('no number is bought for an account that has released ten within 30 days, except for the operator’s', async () => {
  const { stub, clock, opened, ada } = await box()
  const key = accountKey(opened)
  const { body: bob } = await opened.call('POST', '/v1/identities', { name: 'Bob' }, { key })
  const bought = () =>
    stub.asked.filter(({ method, path }) => method === 'POST' && path.endsWith('/IncomingPhoneNumbers.json')).length
  const replace = async (id: string, by: string) => {
    const { status, body } = await opened.call('POST', `/v1/identities/${id}/phone`, {}, { key: by })
    await opened.call('DELETE', `/v1/identities/${id}/phone`, undefined, { key: by })
    return status === 200 ? status : body
  }
  const before = bought()
  for (let turn = 0; turn < 10; turn += 1) expect(await replace(bob.id, key)).toBe(200)
  const refusal = { error: { status: 403, type: 'forbidden', code: 'too_many_numbers_released' } }
  expect(await replace(bob.id, key)).toMatchObject(refusal)
  await opened.settled()
  expect(await replace(bob.id, key)).toMatchObject(refusal)
  const made = await opened.call('POST', '/v1/identities', { name: 'Cy', provision_phone: true }, { key })
  expect(made.body).toMatchObject(refusal)
  expect(bought()).toBe(before + 10)
  await opened.call('DELETE', `/v1/identities/${ada.id}/phone`)
  for (let turn = 0; turn < 10; turn += 1) expect(await replace(ada.id, opened.key)).toBe(200)
  clock.ahead += 31 * 86_400_000
  expect(await replace(bob.id, key)).toBe(200)
})

test('what bought nothing is forgotten: at once where nothing was asked for, else after 30 days', async () => {
  const { stub, clock, opened, ada, job } = await box()
  const database = openStore(join(opened.directory, 'data', 'pillarbox.db'), { readOnly: true })
  onTestFinished(() => database.close())
  const rows = () =>
    database
      .prepare('SELECT status FROM phone_numbers')
      .all()
      .map(({ status }) => status)
  await opened.call('DELETE', `/v1/identities/${ada.id}/phone`)
  await opened.settled()
  for (let turn = 0; turn < 3; turn += 1)
    expect((await opened.call('POST', `/v1/identities/${ada.id}/phone`, { country: 'AQ' })).status).toBe(400)
  expect(rows()).toEqual(['released'])
  stub.next('POST /2010-04-01/Accounts', refuses(400, 21422, 'The phone number is not available'))
  expect((await opened.call('POST', `/v1/identities/${ada.id}/phone`, {})).status).toBe(500)
  clock.ahead += 29 * 86_400_000
  await job('reconcile-numbers')
  expect(rows()).toEqual(['released', 'void'])
  clock.ahead += 2 * 86_400_000
  await job('reconcile-numbers')
  expect(rows()).toEqual(['released'])
})

test('a number whose purchase was answered to nobody is given back', async () => {
  const { stub, opened } = await box()
  stub.losesAnswer('POST /2010-04-01/Accounts')
  const lost = await opened.call('POST', '/v1/identities', { name: 'Bob', provision_phone: true })
  expect(lost.body).toMatchObject({ error: { code: 'sms_provider_error' } })
  expect(stub.numbers.size).toBe(2)
  await opened.restart()
  await opened.settled()
  expect(stub.numbers.size).toBe(1)
})

test('a message goes out, and its callbacks say what became of it', async () => {
  const { stub, opened, ada, send, get, becomes, told } = await box()
  const sms = await send('+14155550123')
  await becomes(sms.id, 'sent')
  const path = `/sms/twilio/status?sms_id=${sms.id}`
  expect(stub.messages[0]).toMatchObject({
    From: ada['phone_number'],
    To: '+14155550123',
    Body: 'Hello',
    StatusCallback: `${origin}${path}`,
  })
  const status = (MessageStatus: string, more: Record<string, string> = {}) => ({
    MessageSid: stub.messages[0]!['sid']!,
    AccountSid: account,
    MessageStatus,
    ...more,
  })
  expect((await told(status('delivered'), path)).status).toBe(200)
  expect(await get(sms.id)).toMatchObject({ status: 'delivered', provider_id: stub.messages[0]!['sid'], error: null })
  await told(status('failed', { ErrorCode: '30003' }), path)
  await told(status('sent'), path)
  expect(await get(sms.id)).toMatchObject({ status: 'delivered', error: null })
  const second = await send('+14155550124')
  await becomes(second.id, 'sent')
  await told({ ...status('undelivered', { ErrorCode: '30038' }), MessageSid: stub.messages[1]!['sid']! }, '/sms/twilio/status')
  expect(await get(second.id)).toMatchObject({
    status: 'failed',
    error: { code: '30038', message: expect.stringContaining('one-time codes') },
  })
  const { body } = await opened.call('GET', `/v1/identities/${ada.id}/events?since=2020-01-01T00:00:00Z`)
  expect(body.data.map(({ type }) => type).filter((type: string) => type.startsWith('sms.'))).toEqual([
    'sms.sent',
    'sms.delivered',
    'sms.sent',
    'sms.failed',
  ])
})

test('what Twilio refuses has failed with its code; who opted out there has opted out here', async () => {
  const { stub, send, get, becomes } = await box()
  stub.next('POST', refuses(400, 21211, "Invalid 'To' Phone Number"))
  const invalid = await send('+14155550123')
  await becomes(invalid.id, 'failed')
  expect(await get(invalid.id)).toMatchObject({ error: { code: '21211' } })
  stub.next('POST', refuses(400, 21610, 'Attempt to send to unsubscribed recipient'))
  const unwanted = await send('+14155550124')
  await becomes(unwanted.id, 'failed')
  expect(await get(unwanted.id)).toMatchObject({ error: { code: '21610' } })
  expect(await send('+14155550124')).toMatchObject({ error: { status: 403, code: 'recipient_opted_out' } })
  expect(stub.messages).toEqual([])
})

test('429 waits as long as it asks, and sends once', async () => {
  const { stub, clock, opened, send, get, becomes } = await box()
  stub.next('POST', refuses(429, 20429, 'Too Many Requests', { 'Retry-After': '3600' }))
  const sms = await send('+14155550123')
  await opened.settled()
  expect(stub.asked.filter(({ path }) => path.endsWith('/Messages.json')).length).toBe(1)
  clock.ahead += 1_800_000
  await opened.restart()
  await opened.settled()
  expect([(await get(sms.id))['status'], stub.messages.length]).toEqual(['queued', 0])
  clock.ahead += 1_900_000
  await opened.restart()
  await becomes(sms.id, 'sent')
  expect(stub.messages).toHaveLength(1)
})

test('a lost answer leaves the message unknown, never sent again by itself; a callback may still tell', async () => {
  const { stub, clock, opened, ada, send, get, becomes, told } = await box()
  stub.losesAnswer('POST')
  const sms = await send('+14155550123')
  await becomes(sms.id, 'unknown')
  expect(await get(sms.id)).toMatchObject({ error: { code: 'answer_lost' }, sent_at: null })
  stub.next('POST', refuses(500, 20500, 'Internal Server Error'))
  const second = await send('+14155550124')
  await becomes(second.id, 'unknown')
  clock.ahead += 24 * 3_600_000
  await opened.restart()
  await opened.settled()
  expect(stub.messages).toHaveLength(1)
  const path = `/sms/twilio/status?sms_id=${sms.id}`
  const sid = stub.messages[0]!['sid']!
  await told({ MessageSid: sid, AccountSid: account, MessageStatus: 'delivered' }, path)
  expect(await get(sms.id)).toMatchObject({ status: 'delivered', provider_id: sid, error: null })
  // who follows sms.sent alone hears of it, too
  const { body } = await opened.call('GET', `/v1/identities/${ada.id}/events?since=2020-01-01T00:00:00Z`)
  const heard = body.data.filter(({ data }) => data.id === sms.id).map(({ type, data }) => [type, data.status])
  expect(heard).toEqual([
    ['sms.sent', 'sent'],
    ['sms.delivered', 'delivered'],
  ])
})

test('an answer that cannot be read is a lost one', async () => {
  const { stub, clock, opened, send, becomes } = await box()
  stub.next('Messages.json', (_, response) => {
    response.writeHead(201, { 'Content-Type': 'text/html' }).end('<html>welcome to the café</html>')
    return true
  })
  const sms = await send('+14155550123')
  await becomes(sms.id, 'unknown')
  clock.ahead += 24 * 3_600_000
  await opened.restart()
  await opened.settled()
  expect(stub.asked.filter(({ path }) => path.endsWith('/Messages.json'))).toHaveLength(1)
})

test('an answer that does not come is lost once its time is up', async () => {
  const { stub, opened, send, get } = await box()
  const { promise: never } = Promise.withResolvers<void>()
  stub.holds('Messages.json', never, () => undefined)
  const sms = await send('+14155550123')
  await opened.settled()
  expect((await get(sms.id))['status']).toBe('unknown')
  expect(await get(sms.id)).toMatchObject({ error: { code: 'answer_lost' } })
  expect(stub.messages).toHaveLength(1)
})

test('a box that stops waits for no answer: the message is unknown, and Twilio has it once', async () => {
  const { stub, opened, send, becomes } = await box()
  const { promise: held, resolve: go } = Promise.withResolvers<void>()
  const { promise: came, resolve: did } = Promise.withResolvers<void>()
  stub.holds('Messages.json', held, did)
  const sms = await send('+14155550123')
  await came
  await opened.restart()
  await becomes(sms.id, 'unknown')
  expect(stub.messages).toHaveLength(1)
  go()
  // the answer would come no sooner than its time is up
}, 12_000)

test('a connection that Twilio has grown tired of loses no message', async () => {
  const { stub, send, becomes } = await box()
  stub.tired = true
  for (const to of ['+14155550123', '+14155550124', '+14155550125']) await becomes((await send(to)).id, 'sent')
  expect(stub.messages).toHaveLength(3)
})

test('what Twilio says never tells our token to callers or the log', async () => {
  const { stub, opened, send, get, becomes } = await box()
  const basic = Buffer.from(`${account}:${token}`).toString('base64')
  const chatty = `Authenticate: ${account}:${token} (Basic ${basic}) will not do`
  stub.next('POST', refuses(401, 20003, chatty))
  const sms = await send('+14155550123')
  await becomes(sms.id, 'failed')
  expect((await get(sms.id))['error']['message']).toBe(`Authenticate: ${account}:… (Basic …) will not do`)
  stub.next('POST /2010-04-01/Accounts', refuses(401, 20003, chatty))
  const bob = await opened.call('POST', '/v1/identities', { name: 'Bob', provision_phone: true })
  expect(bob.body.error['message']).toContain('will not do')
  expect(JSON.stringify(bob.body)).not.toContain(token)
  const logged = opened.logged.join('')
  expect([logged.includes('will not do'), logged.includes(token), logged.includes(basic)]).toEqual([true, false, false])
})

test('Twilio may call as often as it has something to say', async () => {
  const { opened, ada, told } = await box({ PILLARBOX_HTTP__DOCUMENT_RATE_LIMIT: '2', PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '2' })
  for (let turn = 0; turn < 5; turn += 1) expect((await told(announced(ada['phone_number'], `number ${turn}`))).status).toBe(200)
  expect(await inbox(opened, ada.id)).toHaveLength(5)
})

test('a message that Twilio could not hand in is fetched within the hour, once', async () => {
  const { stub, clock, opened, ada, told, job } = await box()
  const now = () => Date.now() + clock.ahead
  const form = announced(ada['phone_number'], 'Your code is 493817')
  stub.media.set('ME1', Buffer.alloc(900, 1))
  const own = { direction: 'outbound-api', status: 'delivered' }
  const stranger = announced('+14155550777', 'for another box of the account')
  stub.arrived.push(listed(form, now(), { num_media: '1' }), listed(announced(ada['phone_number'], 'ours'), now(), own))
  stub.arrived.push(listed(stranger, now()), listed(announced(ada['phone_number'], 'of a former owner'), now() - 3_600_000))
  const waiting = opened.call('GET', `/v1/identities/${ada.id}/wait?channel=sms&timeout=120`)
  await job('fetch-missed-sms')
  expect((await waiting).body).toMatchObject({ codes: ['493817'] })
  await job('fetch-missed-sms')
  expect((await told(form)).status).toBe(200)
  const [sms, ...more] = await inbox(opened, ada.id)
  expect(more).toEqual([])
  expect(sms).toMatchObject({ provider_id: form['MessageSid'], from: form['From'] })
  await opened.settled()
  expect((await inbox(opened, ada.id))[0].media).toMatchObject([{ status: 'kept', size: 900 }])
  const asked = stub.asked.find(({ method, path }) => method === 'GET' && path.includes('/Messages.json'))!
  expect(new URL(asked.path, stub.url).searchParams.get('DateSent>')).toBeTruthy()
  expect(opened.logged.join('')).toContain('missed text message fetched')
  await opened.call('DELETE', `/v1/identities/${ada.id}/sms/${sms.id}`)
  await opened.restart()
  await opened.settled()
  expect(stub.asked.filter(({ method, path }) => method === 'GET' && path.includes('/Messages.json')).length).toBe(4)
  expect(await inbox(opened, ada.id)).toEqual([])
})

test('numbers are told the box’s new public address', async () => {
  const { stub, opened, job } = await box()
  const [number] = [...stub.numbers.values()]
  const foreign = {
    sid: 'PNffffffffffffffffffffffffffffffff',
    phone_number: '+14155550888',
    friendly_name: 'phone_of_another_box',
  }
  stub.numbers.set(foreign.sid, { ...foreign, sms_url: 'https://other.example.com/sms/twilio/inbound' })
  await job('reconcile-numbers')
  const asked = () =>
    stub.asked.filter(({ method, path }) => method === 'POST' && path.includes('/IncomingPhoneNumbers/PN')).length
  expect(asked()).toBe(0)
  number!.sms_url = 'https://old.example.com/sms/twilio/inbound'
  await job('reconcile-numbers')
  expect([number!.sms_url, asked()]).toEqual([`${origin}/sms/twilio/inbound`, 1])
  expect(stub.numbers.get(foreign.sid)!.sms_url).toBe('https://other.example.com/sms/twilio/inbound')
  expect(opened.logged.join('')).toContain('callback URL of a number differed and was corrected')
})

test('the hourly look leaves a purchase alone that is under way, and gives back what one lost', async () => {
  const { stub, opened, job } = await box()
  const { promise: held, resolve: go } = Promise.withResolvers<void>()
  const { promise: bought, resolve: did } = Promise.withResolvers<void>()
  stub.holds('POST /2010-04-01/Accounts', held, did)
  const buying = opened.call('POST', '/v1/identities', { name: 'Bob', provision_phone: true })
  await bought
  expect(stub.numbers.size).toBe(2)
  await job('reconcile-numbers')
  go()
  const { status, body } = await buying
  expect([status, [...stub.numbers.values()].map(({ phone_number }) => phone_number)]).toEqual([
    201,
    expect.arrayContaining([body['phone_number']]),
  ])
  await job('reconcile-numbers')
  expect(stub.numbers.size).toBe(2)
  stub.losesAnswer('POST /2010-04-01/Accounts')
  await opened.call('POST', '/v1/identities', { name: 'Cy', provision_phone: true })
  expect(stub.numbers.size).toBe(3)
  await job('reconcile-numbers')
  await opened.settled()
  expect(stub.numbers.size).toBe(2)
})

test('what was handed in is remembered for as long as Twilio keeps it, and longer while it is here', async () => {
  const { clock, opened, ada, told, job } = await box()
  const kept = announced(ada['phone_number'], 'kept')
  const gone = announced(ada['phone_number'], 'gone')
  for (const form of [kept, gone]) await told(form)
  const [{ id }] = (await inbox(opened, ada.id)).filter(({ body }: { body: string }) => body === 'gone')
  await opened.call('DELETE', `/v1/identities/${ada.id}/sms/${id}`)
  const bodies = async () => (await inbox(opened, ada.id)).map(({ body }: { body: string }) => body)
  clock.ahead += 399 * 86_400_000
  await job('forget-sms')
  for (const form of [kept, gone]) await told(form)
  expect(await bodies()).toEqual(['kept'])
  clock.ahead += 2 * 86_400_000
  await job('forget-sms')
  await told(kept)
  expect(await bodies()).toEqual(['kept'])
  // nothing else shows that the memory is bounded
  await told(gone)
  expect(await bodies()).toEqual(['gone', 'kept'])
})

test('who asks for a number many times at once gets one', async () => {
  const { stub, opened } = await box()
  const { body: bob } = await opened.call('POST', '/v1/identities', { name: 'Bob' })
  const answers = await Promise.all(Array.from({ length: 5 }, () => opened.call('POST', `/v1/identities/${bob.id}/phone`, {})))
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(4)
  expect(stub.numbers.size).toBe(2)
})

test('a message comes in once, however often it is told', async () => {
  const { opened, ada, told } = await box()
  const form = announced(ada['phone_number'], 'Your code is 493817')
  const first = await told(form)
  expect(first).toMatchObject({
    status: 200,
    type: expect.stringContaining('text/xml'),
    text: expect.stringContaining('<Response>'),
  })
  expect((await told(form)).status).toBe(200)
  const [sms, ...more] = await inbox(opened, ada.id)
  expect(more).toEqual([])
  expect(sms).toMatchObject({
    body: 'Your code is 493817',
    codes: ['493817'],
    provider: 'twilio',
    provider_id: form['MessageSid'],
  })
  await opened.call('DELETE', `/v1/identities/${ada.id}/sms/${sms.id}`)
  expect((await told(form)).status).toBe(200)
  expect(await inbox(opened, ada.id)).toEqual([])
  expect((await told(announced('+14155559999', 'for nobody'))).status).toBe(200)
})

test('what Twilio did not sign for this URL and account is 403, logged, and has no effect', async () => {
  const { opened, ada, told } = await box()
  const form = announced(ada['phone_number'], 'Forged')
  const attempts: [form: Record<string, string>, signature: string | null][] = [
    [form, null],
    [form, ''],
    [form, 'AAAA'],
    [form, signed(form, '')],
    [form, signed(form, token, `http://box.example.com/sms/twilio/inbound`)],
    [{ ...form, Body: 'Altered' }, signed(form)],
    [{ ...form, FromBody: 'x' }, signed({ ...form, FromBody: 'x' })],
    [{ ...form, AccountSid: `AC${'f'.repeat(32)}` }, signed({ ...form, AccountSid: `AC${'f'.repeat(32)}` })],
  ]
  const { Body: _, ...bodiless } = form
  attempts.push([bodiless, signed(bodiless)])
  for (const [one, signature] of attempts) {
    const { status, text } = await told(one, '/sms/twilio/inbound', { signature })
    expect([status, JSON.parse(text).error.code]).toEqual([403, 'bad_signature'])
  }
  expect(opened.logged.filter((line) => line.includes('callback rejected'))).toHaveLength(attempts.length)
  expect(await inbox(opened, ada.id)).toEqual([])
  const large = await fetch(`${opened.url}/sms/twilio/inbound`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'x'.repeat(70_000),
  })
  expect(large.status).toBe(400)
  expect(opened.logged.join('')).not.toContain(token)
})

const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`F${index}`, '']))

test('a form with more fields than a message has is refused before its signature is checked', async () => {
  const { opened, ada, told } = await box()
  const reasonOf = async (count: number) => {
    const { status, text } = await told({ ...announced(ada['phone_number'], 'x'), ...fields(count) }, undefined, {
      signature: 'AAAA',
    })
    return [status, JSON.parse(text).error.message]
  }
  expect(await reasonOf(50)).toEqual([403, expect.stringContaining('its signature is invalid')])
  expect(await reasonOf(9000)).toEqual([403, 'This call is not from Twilio: it has more than 100 fields.'])
  const pictures = Array.from({ length: 20 }, (_, index) => [`MediaUrl${index}`, '']) as [string, string][]
  const types = pictures.map(([name]) => [name.replace('Url', 'ContentType'), 'image/png'])
  const form = { ...announced(ada['phone_number'], 'many'), ...Object.fromEntries([...pictures, ...types]) } as Record<
    string,
    string
  >
  expect((await told(form)).status).toBe(200)
  expect(opened.logged.filter((line) => line.includes('callback rejected'))).toHaveLength(2)
})

test('STOP at Twilio is STOP here', async () => {
  const { ada, send, told } = await box()
  await told(announced(ada['phone_number'], 'Arrêt', { From: '+14155550123' }))
  expect(await send('+14155550123')).toMatchObject({ error: { code: 'recipient_opted_out' } })
  await told(announced(ada['phone_number'], 'hello again', { From: '+14155550123', OptOutType: 'START' }))
  expect(await send('+14155550123')).toMatchObject({ status: 'queued' })
})

test('pictures are fetched with credentials for the API alone, and no larger than they may be', async () => {
  const { stub, opened, ada, told } = await box({ PILLARBOX_SMS__MEDIA_LIMIT: '100 kB' })
  stub.media.set('ME1', Buffer.alloc(90_000, 1))
  stub.media.set('ME2', Buffer.alloc(200_000, 2))
  const at = (id: string) => `${stub.url}/2010-04-01/Accounts/${account}/Messages/MM1/Media/${id}`
  const files = { MediaUrl0: at('ME1'), MediaContentType0: 'image/png', MediaUrl1: at('ME2'), MediaContentType1: 'image/jpeg' }
  await told(announced(ada['phone_number'], '', { NumMedia: '2', ...files }))
  const media = async () => (await inbox(opened, ada.id))[0].media
  const states = async () => (await media()).map(({ status }: { status: string }) => status)
  // without a second try
  await opened.settled()
  expect(await states()).toEqual(['kept', 'failed'])
  const [sms] = await inbox(opened, ada.id)
  const { body: one } = await opened.call('GET', `/v1/identities/${ada.id}/sms/${sms.id}/media/0`)
  const opens = await fetch((one['url'] as string).replace(origin, opened.url))
  expect(Buffer.from(await opens.arrayBuffer())).toEqual(stub.media.get('ME1'))
})

test('of one account four pictures are fetched at once', async () => {
  const { stub, opened, ada, told } = await box()
  const came = async (id: string) => {
    stub.media.set(id, Buffer.alloc(9, 1))
    const url = `${stub.url}/2010-04-01/Accounts/${account}/Messages/${id}/Media/${id}`
    const picture = { NumMedia: '1', MediaUrl0: url, MediaContentType0: 'image/png' }
    await told(announced(ada['phone_number'], id, { ...picture, MessageSid: `MM${id.slice(2).padStart(32, '0')}` }))
  }
  const kept = async () =>
    (await inbox(opened, ada.id)).filter(({ media }: { media: { status: string }[] }) => media[0]!.status === 'kept').length
  await came('ME1')
  await opened.settled()
  expect(await kept()).toBe(1)
  stub.held = []
  const asked = () => stub.asked.filter(({ path }) => path.startsWith('/store/')).length - 1
  for (const id of ['ME2', 'ME3', 'ME4', 'ME5', 'ME6', 'ME7']) await came(id)
  await expect.poll(asked).toBe(4)
  for (let given = 0; given < 6; given += 1) {
    await expect.poll(() => stub.held!.length).toBeGreaterThan(0)
    expect(asked() - given).toBeLessThanOrEqual(4)
    stub.held.shift()!()
    await expect.poll(kept).toBe(given + 2)
  }
})

/** Octets that a text of three letters counts for: 256, and its texts (the codes in it are []). */
const text = 256 + 3 + 2

test('a picture that finds no room in the account is not fetched before there is some, and not kept where it is too large', async () => {
  const { stub, clock, opened, ada, told } = await box({ PILLARBOX_LIMITS__STORAGE_BYTES: String(100_000 + 3 * text) })
  for (const [id, octets] of [
    ['ME1', 60_000],
    ['ME2', 60_000],
    ['ME3', 40_000],
    ['ME4', 9],
  ] as const) {
    stub.media.set(id, Buffer.alloc(octets, 1))
  }
  const came = async (id: string) => {
    const url = `${stub.url}/2010-04-01/Accounts/${account}/Messages/${id}/Media/${id}`
    const picture = { NumMedia: '1', MediaUrl0: url, MediaContentType0: 'image/png' }
    await told(announced(ada['phone_number'], id, { ...picture, MessageSid: `MM${id.slice(2).padStart(32, '0')}` }))
  }
  const states = async () =>
    Object.fromEntries(
      (await inbox(opened, ada.id)).map(({ body, media }: { body: string; media: { status: string }[] }) => [
        body,
        media[0]!.status,
      ]),
    )
  const fetched = () => stub.asked.filter(({ path }) => path.endsWith('ME4')).length
  await came('ME1')
  await opened.settled()
  expect(await states()).toEqual({ ME1: 'kept' })
  await came('ME2')
  await opened.settled()
  expect(await states()).toEqual({ ME1: 'kept', ME2: 'failed' })
  await came('ME3')
  await opened.settled()
  expect(await states()).toEqual({ ME1: 'kept', ME2: 'failed', ME3: 'kept' })
  await came('ME4')
  await opened.settled()
  expect([await states(), fetched()]).toEqual([{ ME1: 'kept', ME2: 'failed', ME3: 'kept', ME4: 'pending' }, 0])
  const first = (await inbox(opened, ada.id)).find(({ body }: { body: string }) => body === 'ME1')
  await opened.call('DELETE', `/v1/identities/${ada.id}/sms/${first.id}`)
  clock.ahead += 2 * 3_600_000
  await opened.settled()
  expect(await states()).toEqual({ ME2: 'failed', ME3: 'kept', ME4: 'kept' })
  expect(fetched()).toBeGreaterThan(0)
  expect((await opened.call('GET', '/v1/billing/subscription')).body['usage'].storage_bytes).toBe(40_009 + 3 * text)
})

test('what is deleted before any attempt to send it does not count for the month', async () => {
  const { stub, opened, ada, send } = await box()
  const used = async () => (await opened.call('GET', '/v1/billing/subscription')).body['usage'].sms_sent
  // one that gets no answer keeps those behind it waiting
  let unanswered: { destroy: () => unknown } | undefined
  stub.next('POST', (_, response) => {
    unanswered = response
    return true
  })
  const first = await send('+14155550123')
  await expect.poll(() => stub.asked.filter(({ path }) => path.endsWith('/Messages.json')).length).toBe(1)
  const second = await send('+14155550123')
  expect(await used()).toBe(2)
  for (const { id } of [second, first]) await opened.call('DELETE', `/v1/identities/${ada.id}/sms/${id}`)
  expect(await used()).toBe(1)
  unanswered?.destroy()
})
