import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { appliance, deliver, message } from '../support/appliance.ts'
import { refusal } from '../support/handshake.ts'
import { movable } from '../support/held-clock.ts'
import { connect, identity, keyWith, live, token } from '../support/live.ts'

test('a token says what it opens and where', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const { status, body, headers } = await box.call('POST', '/v1/realtime/token', { identity_id: ada.id, expires_in: 60 })
  expect(status).toBe(200)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(body.token).toMatch(/^rtt_/)
  expect(body.url).toBe(`${box.url.replace('http', 'ws')}/v1/realtime`)
  expect(body.supabase_url).toBe(box.url)
  const left = Date.parse(body.expires_at as string) - Date.now()
  expect(left).toBeGreaterThan(30_000)
  expect(left).toBeLessThanOrEqual(60_000)
})

test('a token is asked for in the right way, and opens nothing its key may not read', async () => {
  const box = await appliance()
  const emails = await keyWith(box, { scopes: ['emails:read'] })
  const wrong: [object, string | undefined, number, object][] = [
    [{ expires_in: 3601 }, undefined, 400, { param: 'expires_in' }],
    [{ channels: ['everything'] }, undefined, 400, { param: 'channels.0' }],
    [{ identity_id: 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a' }, undefined, 404, {}],
    [{ channels: ['sms_messages'] }, emails.key, 403, { param: 'channels', code: 'missing_scope' }],
  ]
  for (const [input, key, status, error] of wrong) {
    const answer = await box.call('POST', '/v1/realtime/token', input, key === undefined ? {} : { key })
    expect(answer).toMatchObject({ status, body: { error } })
  }
  const writer = await keyWith(box, { scopes: ['messages:write'] })
  expect((await box.call('POST', '/v1/realtime/token', {}, { key: writer.key })).status).toBe(403)

  const ada = await identity(box, 'Ada')
  const socket = await connect(box, {}, emails.key)
  socket.say({ type: 'subscribe', channel: 'agent_events', since: '2001-01-01T00:00:00Z' })
  await socket.until('subscribed')
  await box.call('PATCH', `/v1/identities/${ada.id}`, { name: 'Ada L' })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Only this' }, 'x\n') })
  await socket.until('event')
  expect(socket.frames.filter((frame) => frame.type === 'event').map((frame) => frame.event.type)).toEqual(['email.received'])
})

test.each([
  ['another channel', { channels: ['email_messages'] }, { channel: 'agent_events' }],
  ['another identity', { identity: true }, { channel: 'agent_events', identity_id: 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a' }],
])('asking a token for %s is told, and asking again and again ends the socket with 4403', async (_, input, frame) => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const socket = await connect(box, 'identity' in input ? { identity_id: ada.id } : input)
  for (let count = 0; count < 4; count += 1) socket.say({ type: 'subscribe', ...frame })
  expect((await socket.until('error'))[0]).toMatchObject({ code: 'not_permitted' })
  expect((await socket.closed).code).toBe(4403)
})

test('who has no good token is refused before the upgrade, in the shape of the API', async () => {
  const clock = movable()
  const box = await appliance({}, clock)
  const made = await token(box, { expires_in: 10 })
  const bad: [string, number, string][] = [
    [made.url, 401, 'missing_token'],
    [`${made.url}?token=${box.key}`, 401, 'invalid_token'],
    [`${made.url}?token=${made.token.slice(0, -2)}`, 401, 'invalid_token'],
    [`${made.url}?token=${made.token}x`, 401, 'invalid_token'],
    [`${made.url}?token=rtt_`, 401, 'invalid_token'],
    [`${made.url}?token=${made.token}&token=${made.token}`, 400, 'repeated_parameter'],
    [`${box.url}/v1/nowhere?token=${made.token}`, 404, 'unknown_path'],
  ]
  for (const [url, status, code] of bad) expect(await refusal(url)).toMatchObject({ status, error: { code } })
  const handshake = await refusal(`${made.url}?token=${made.token}`, { 'Sec-WebSocket-Key': 'short' })
  expect(handshake).toMatchObject({ status: 400, error: { code: 'bad_handshake' } })
  clock.ahead = 11_000
  expect(await refusal(`${made.url}?token=${made.token}`)).toMatchObject({ status: 401, error: { code: 'token_expired' } })
})

test('no token is written to the log, however it was shown', async () => {
  const box = await appliance()
  const made = await token(box)
  const supabase = `${made.url.replace('/v1/realtime', '/realtime/v1/websocket')}?vsn=2.0.0&apikey=`
  const shown = [
    await live(`${made.url}?token=${made.token}`),
    await live(made.url, ['pillarbox.v1', made.token]),
    await live(supabase + made.token),
  ]
  expect(shown.map(({ webSocket }) => webSocket.extensions)).toEqual(['', '', ''])
  await refusal(`${made.url}?token=${made.token}x`)
  await refusal(`${made.url}/nowhere?token=${made.token}`)
  shown[0]!.say({ type: 'refresh', token: `${made.token}x` })
  await shown[0]!.closed
  expect(box.logged.filter((line) => line.includes('/v1/realtime'))).not.toEqual([])
  expect(box.logged.filter((line) => line.includes(made.token.slice(0, 40)))).toEqual([])
})

test('every change of one character makes a token worthless', async () => {
  const box = await appliance()
  const made = await token(box)
  for (let index = 0; index < made.token.length; index += 7) {
    const letter = made.token[index] === 'q' ? 'r' : 'q'
    const changed = made.token.slice(0, index) + letter + made.token.slice(index + 1)
    expect((await refusal(`${made.url}?token=${changed}`)).status).toBe(401)
  }
  await live(`${made.url}?token=${made.token}`)
})

test('a page connects only from our own origin or a listed one', async () => {
  const box = await appliance({ PILLARBOX_HTTP__CORS_ORIGINS: 'https://app.example.com' })
  const made = await token(box)
  const url = `${made.url}?token=${made.token}`
  for (const origin of ['https://evil.test', 'null', 'https://app.example.com.evil.test']) {
    expect(await refusal(url, { Origin: origin })).toMatchObject({ status: 403, error: { code: 'origin_not_allowed' } })
  }
  for (const origin of [box.url, 'https://app.example.com']) await live(url, [], { Origin: origin })
})

test('an open WebSocket takes no place of calls, also by TLS', async () => {
  const box = await appliance({ PILLARBOX_HTTP__TLS__LISTEN: '127.0.0.1:0', PILLARBOX_HTTP__MAX_CONNECTIONS: '1' })
  const { plain, tls } = box.app.httpAddresses
  // whose certificate is its own
  box.url = `http://127.0.0.1:${plain!.port}`
  const { port } = tls!
  const socket = new WebSocket(`wss://127.0.0.1:${port}/v1/realtime?token=${(await token(box)).token}`, {
    rejectUnauthorized: false,
  })
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  const call = request({ port, host: '127.0.0.1', path: '/healthz', rejectUnauthorized: false, agent: false }).end()
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  expect([response.statusCode, socket.readyState]).toEqual([200, WebSocket.OPEN])
  response.resume()
})

test('a request to upgrade to anything else is an ordinary call', async () => {
  const box = await appliance()
  const answer = await refusal(`${box.url}/healthz`, { Upgrade: 'h2c' })
  expect(answer.status).toBe(200)
})

test('an expired token subscribes to nothing more, until a fresh one is shown', async () => {
  const clock = movable()
  const box = await appliance({}, clock)
  const socket = await connect(box, { expires_in: 5 })
  socket.say({ type: 'subscribe', channel: 'agent_events' })
  await socket.until('subscribed')
  clock.ahead = 6000
  const fresh = await token(box, { expires_in: 60 })
  socket.say({ type: 'refresh', token: fresh.token })
  await socket.until('refreshed')
  socket.say({ type: 'subscribe', channel: 'email_messages' })
  await socket.until('subscribed', 2)
  clock.ahead = 120_000
  socket.say({ type: 'subscribe', channel: 'sms_messages' })
  expect((await socket.until('error'))[0]).toMatchObject({ code: 'token_expired', channel: 'sms_messages' })
  expect((await socket.closed).code).toBe(4401)
})

test('a fresh token that opens less ends what it does not open', async () => {
  const box = await appliance()
  const socket = await connect(box)
  for (const channel of ['agent_events', 'email_messages']) socket.say({ type: 'subscribe', channel })
  await socket.until('subscribed', 2)
  socket.say({ type: 'refresh', token: (await token(box, { channels: ['email_messages'] })).token })
  expect((await socket.until('error'))[0]).toMatchObject({ code: 'ended', channel: 'agent_events' })
  await socket.until('refreshed')
  const { email } = await identity(box)
  await deliver(box.smtp, { to: email, raw: message({ Subject: 'x' }, 'x\n') })
  await socket.until('event')
  expect(socket.frames.filter((frame) => frame.type === 'event')).toHaveLength(1)
})
