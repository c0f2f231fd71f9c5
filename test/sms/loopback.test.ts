import { expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'

const told = (data: Record<string, string>[]) => data.map((one) => (one['type'] === 'sms' ? one['body'] : one['subject']))

async function people(box: Appliance, ...names: string[]) {
  const made = []
  for (const name of names) made.push((await box.call('POST', '/v1/identities', { name, provision_phone: true })).body)
  return made
}

async function settled(box: Appliance, identity: string, sms: string) {
  await box.settled()
  return (await box.call('GET', `/v1/identities/${identity}/sms/${sms}`)).body
}

test('a message goes from identity to identity, with its code, its events, and a wait that hears it', async () => {
  const box = await appliance()
  const [ada, bob] = await people(box, 'Ada', 'Bob')
  expect(ada!['phone_number']).toMatch(/^\+1\d{3}55501\d\d$/)
  const waiting = box.call('GET', `/v1/identities/${bob!['id']}/wait?channel=sms&timeout=120`)
  const sent = await box.call('POST', `/v1/identities/${ada!['id']}/sms`, {
    to: bob!['phone_number'],
    body: 'Your code is 493817',
  })
  expect(sent.status).toBe(201)
  expect(sent.headers.get('location')).toBe(`/v1/identities/${ada!['id']}/sms/${sent.body['id']}`)
  expect(sent.body).toMatchObject({ status: 'queued', direction: 'outbound', read: true, segments: 1, provider: 'loopback' })
  const { body: heard } = await waiting
  expect(heard).toMatchObject({ timed_out: false, codes: ['493817'], links: [] })
  expect(heard['item']).toMatchObject({ type: 'sms', body: 'Your code is 493817', from: ada!['phone_number'], read: false })
  expect(await settled(box, ada!['id'], sent.body['id'])).toMatchObject({ status: 'delivered', error: null })
  const attempts = box.logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'SMS attempt')
  expect(attempts).toMatchObject([
    { part: 'sms', sms_id: sent.body['id'], attempt: 1, result: 'delivered', next_attempt_at: null },
  ])
  expect(attempts[0]).toMatchObject({ queue_id: expect.stringMatching(/^dlv_/), ms: expect.any(Number) })
  const { body: events } = await box.call('GET', `/v1/identities/${ada!['id']}/events?since=2020-01-01T00:00:00Z`)
  expect(events.data.map(({ type }) => type)).toEqual(['identity.created', 'phone.provisioned', 'sms.sent', 'sms.delivered'])
  const { body: list } = await box.call('GET', `/v1/identities/${bob!['id']}/sms?unread=true&direction=inbound`)
  expect(list.data).toHaveLength(1)
  const path = `/v1/identities/${bob!['id']}/sms/${list.data[0].id}`
  expect((await box.call('PATCH', path, { unread: false })).body).toMatchObject({ read: true })
  expect((await box.call('GET', `/v1/identities/${bob!['id']}/sms?unread=true`)).body.data).toEqual([])
  expect((await box.call('DELETE', path)).body).toEqual({ id: list.data[0].id, deleted: true })
  expect((await box.call('GET', path)).status).toBe(404)
  const { body: left } = await box.call('GET', `/v1/identities/${bob!['id']}/events?type=sms.received`)
  expect(left.data[0].data).toEqual({ id: list.data[0].id, deleted: true })
})

test('a wait gives the links of a text message', async () => {
  const box = await appliance()
  const [ada] = await people(box, 'Ada')
  const body = 'Acme: confirm your number at https://acme.test/verify?t=8f3a, or write to us at https://acme.test/help.'
  await box.call('POST', '/v1/sms/loopback/inject', { from: '+15550100199', to: ada!['phone_number'], body })
  const { body: heard } = await box.call('GET', `/v1/identities/${ada!['id']}/wait?channel=sms&timeout=0`)
  expect(heard['links'].map(({ url }: { url: string }) => url)).toEqual([
    'https://acme.test/verify?t=8f3a',
    'https://acme.test/help',
  ])
  expect(heard['links'][0]).toMatchObject({ kind: 'verify' })
})

test('both spellings send; what cannot be sent is refused with what would be right', async () => {
  const box = await appliance()
  const [ada, bob] = await people(box, 'Ada', 'Bob')
  const { body: mute } = await box.call('POST', '/v1/identities', { name: 'Mute' })
  const send = async (body: unknown, id = ada!['id']) => (await box.call('POST', `/v1/identities/${id}/sms/send`, body)).body
  expect(await send({ to: bob!['phone_number'], body: 'hi' })).toMatchObject({ status: 'queued' })
  expect(await send({ to: bob!['phone_number'], body: 'hi' }, mute.id)).toMatchObject({
    error: { status: 409, code: 'no_phone_number' },
  })
  for (const to of ['5550100', '+0123456789', '+1555', '+49', 'bob', '+1 415 555 0100', '+141555501001']) {
    expect(await send({ to, body: 'hi' })).toMatchObject({ error: { status: 400, param: 'to' } })
  }
  for (const body of ['', 'x'.repeat(1601), 'a\u0007b', 7]) {
    expect(await send({ to: bob!['phone_number'], body })).toMatchObject({ error: { status: 400, param: 'body' } })
  }
  expect(await send({ body: 'hi' })).toMatchObject({ error: { param: 'to', code: 'missing' } })
  expect(await send({ to: bob!['phone_number'], body: '😀'.repeat(1600) })).toMatchObject({ segments: 49 })
  const { body: lost } = await box.call('POST', `/v1/identities/${ada!['id']}/sms`, { to: '+15550100177', body: 'anybody?' })
  expect(await settled(box, ada!['id'], lost.id)).toMatchObject({ status: 'failed', error: { code: 'unknown_number' } })
  await box.call('PATCH', `/v1/identities/${ada!['id']}`, { status: 'suspended' })
  expect(await send({ to: bob!['phone_number'], body: 'hi' })).toMatchObject({
    error: { status: 409, code: 'identity_suspended' },
  })
})

test('who says STOP is sent nothing until START', async () => {
  const box = await appliance()
  const [ada, bob] = await people(box, 'Ada', 'Bob')
  const say = async (body: string) => {
    const put = await box.call('POST', '/v1/sms/loopback/inject', { from: bob!['phone_number'], to: ada!['phone_number'], body })
    expect(put.status).toBe(201)
  }
  const send = () => box.call('POST', `/v1/identities/${ada!['id']}/sms`, { to: bob!['phone_number'], body: 'news' })
  for (const word of ['STOP', ' Stop. ', 'désabonner', '退订', 'unsubscribe']) {
    await say(word)
    expect((await send()).body).toMatchObject({ error: { status: 403, code: 'recipient_opted_out', type: 'forbidden' } })
    await say('Please do not stop')
    expect((await send()).status).toBe(403)
    await say('start')
    expect((await send()).status).toBe(201)
  }
})

test('pictures are kept, listed, and opened by a signed URL', async () => {
  const box = await appliance()
  const [ada] = await people(box, 'Ada')
  const content = Buffer.from('not really a picture')
  const { body: sms } = await box.call('POST', '/v1/sms/loopback/inject', {
    from: '12345',
    to: ada!['phone_number'],
    body: 'look',
    media: [{ content_type: 'image/png', content: content.toString('base64') }],
  })
  expect(sms['media']).toMatchObject([{ index: 0, content_type: 'image/png', status: 'kept', size: content.length }])
  const { body: one } = await box.call('GET', `/v1/identities/${ada!['id']}/sms/${sms['id']}/media/0`)
  const opened = await fetch(one['url'])
  expect([opened.status, opened.headers.get('content-type'), opened.headers.get('content-disposition')]).toEqual([
    200,
    'image/png',
    `attachment; filename="${sms['id']}-0"`,
  ])
  expect(Buffer.from(await opened.arrayBuffer())).toEqual(content)
  expect((await fetch(one['url'].replace('signature=', 'signature=x'))).status).toBe(403)
  expect((await box.call('GET', `/v1/identities/${ada!['id']}/sms/${sms['id']}/media/1`)).status).toBe(404)
  await box.call('DELETE', `/v1/identities/${ada!['id']}/sms/${sms['id']}`)
  expect((await fetch(one['url'])).status).toBe(404)
})

test('the timeline shows mail and messages in the order they came, page by page', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({}, clock)
  const [ada] = await people(box, 'Ada')
  const wanted: string[] = []
  for (let turn = 0; turn < 9; turn += 1) {
    clock.time += 1000
    const text = `number ${turn}`
    wanted.push(text)
    if (turn % 3 === 0) await deliver(box.smtp, { to: ada!['email'], raw: message({ Subject: text }, 'x\n') })
    else await box.call('POST', '/v1/sms/loopback/inject', { from: '+15550100199', to: ada!['phone_number'], body: text })
  }
  const path = `/v1/identities/${ada!['id']}/messages`
  for (const limit of [1, 2, 4, 9]) {
    const seen: unknown[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: { body: { data: Record<string, string>[]; next_cursor: string | null } } = await box.call(
        'GET',
        `${path}?limit=${limit}${cursor ? `&cursor=${cursor}` : ''}`,
      )
      seen.push(...told(page.body.data))
      cursor = page.body.next_cursor
    }
    expect(seen).toEqual(wanted)
  }
  expect(told((await box.call('GET', `${path}?limit=3&offset=4`)).body.data)).toEqual(wanted.slice(4, 7))
})

test('a number goes when it is taken away or its identity goes, and what waited is not sent', async () => {
  const box = await appliance()
  const [ada, bob] = await people(box, 'Ada', 'Bob')
  expect((await box.call('POST', `/v1/identities/${ada!['id']}/phone`, { country: 'us' })).body).toMatchObject({
    error: { status: 409, code: 'phone_number_exists' },
  })
  expect((await box.call('DELETE', `/v1/identities/${ada!['id']}/phone`)).body).toEqual({ id: ada!['id'], deleted: true })
  expect((await box.call('GET', `/v1/identities/${ada!['id']}`)).body['phone_number']).toBeUndefined()
  const again = await box.call('POST', `/v1/identities/${ada!['id']}/phone`, { country: 'GB' })
  expect(again).toMatchObject({
    status: 200,
    body: { id: ada!['id'], phone_number: expect.stringMatching(/^\+447700900\d{3}$/) },
  })
  expect((await box.call('POST', `/v1/identities/${bob!['id']}/phone`, { country: 'gbr' })).body).toMatchObject({
    error: { param: 'country' },
  })
  await box.call('DELETE', `/v1/identities/${bob!['id']}`)
  const types = async (id: string) => {
    const { body } = await box.call('GET', `/v1/identities/${id}/events?since=2020-01-01T00:00:00Z`)
    return body.data.map(({ type }) => type)
  }
  await box.settled()
  expect(await types(ada!['id'])).toContain('phone.released')
  const { body: gone } = await box.call('POST', '/v1/sms/loopback/inject', {
    from: '+15550100199',
    to: bob!['phone_number'],
    body: 'hello',
  })
  expect(gone.error).toMatchObject({ status: 404 })
})

test('without a provider nothing is half made', async () => {
  const box = await appliance({ PILLARBOX_SMS__PROVIDER: 'none' })
  const made = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
  expect(made.body).toMatchObject({ error: { status: 400, code: 'sms_not_configured', param: 'provision_phone' } })
  expect((await box.call('GET', '/v1/identities')).body.data).toEqual([])
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  expect((await box.call('POST', `/v1/identities/${ada.id}/phone`, {})).body).toMatchObject({
    error: { code: 'sms_not_configured' },
  })
  expect((await box.call('POST', `/v1/identities/${ada.id}/sms`, { to: '+14155550100', body: 'x' })).body).toMatchObject({
    error: { code: 'sms_not_configured' },
  })
})

test('an identity sends so many an hour, and only where it may', async () => {
  const box = await appliance({ PILLARBOX_SMS__RATE_PER_IDENTITY: '2', PILLARBOX_SMS__ALLOW_COUNTRIES: 'US' })
  const [ada, bob] = await people(box, 'Ada', 'Bob')
  const send = (to: string) => box.call('POST', `/v1/identities/${ada!['id']}/sms`, { to, body: 'x' })
  for (const to of ['+8821612345678', '+491711234567', '+18765550123']) {
    expect((await send(to)).body).toMatchObject({ error: { status: 403, code: 'country_not_allowed' } })
  }
  for (let turn = 0; turn < 2; turn += 1) expect((await send(bob!['phone_number'])).status).toBe(201)
  const third = await send(bob!['phone_number'])
  expect(third.body).toMatchObject({ error: { type: 'rate_limited', code: 'sms_rate' } })
  expect(Number(third.headers.get('retry-after'))).toBeGreaterThan(0)
})
