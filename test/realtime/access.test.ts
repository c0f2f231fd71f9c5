import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import type { Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import type { Clock } from '../../src/core/clock.ts'
import type { Sql } from '../../src/store/database.ts'
import { SqliteDatabase } from '../../src/store/sqlite.ts'
import { appliance, deliver, message } from '../support/appliance.ts'
import type { Appliance } from '../support/appliance.ts'
import { connect, identity, live, token } from '../support/live.ts'

/** The status and error of a handshake that is refused. */
async function refusal(url: string, headers: Record<string, string> = {}): Promise<{ status: number; error: { code: string } }> {
  const { hostname, port, pathname, search } = new URL(url)
  const socket = connectTcp(Number(port), hostname)
  const fields = {
    Host: `${hostname}:${port}`,
    Upgrade: 'websocket',
    Connection: 'Upgrade, close',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`)
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
  await Promise.race([once(socket, 'close'), once(socket, 'end')])
  socket.destroy()
  const [head, body] = answer.split('\r\n\r\n')
  return { status: Number(head!.slice(9, 12)), error: (JSON.parse(body || '{"error":{}}') as { error: { code: string } }).error }
}

/** A client that opens a socket, and then neither asks nor answers. */
async function silent(made: { token: string; url: string }): Promise<Socket> {
  const { hostname, port, pathname } = new URL(made.url)
  const socket = connectTcp(Number(port), hostname)
  const handshake = [
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ]
  socket.write(`GET ${pathname}?token=${made.token} HTTP/1.1\r\nHost: ${hostname}\r\n${handshake.join('\r\n')}\r\n\r\n`)
  await once(socket, 'data')
  return socket.resume()
}

async function keyWith(box: Appliance, wish: object): Promise<{ id: string; key: string }> {
  const { body } = await box.call('POST', '/v1/api-keys', wish)
  return body as never
}

function movable(): Clock & { ahead: number } {
  return {
    ahead: 0,
    now() {
      return Date.now() + this.ahead
    },
  }
}

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
  for (const [wish, key, status, error] of wrong) {
    const answer = await box.call('POST', '/v1/realtime/token', wish, key === undefined ? {} : { key })
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
])('asking a token for %s ends the socket with 4403', async (_, wish, frame) => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const socket = await connect(box, 'identity' in wish ? { identity_id: ada.id } : wish)
  socket.say({ type: 'subscribe', ...frame })
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

test('sockets and tokens of a key end with it: revoked, rotated, expired', async () => {
  const clock = movable()
  const box = await appliance({}, clock)
  const revoked = await keyWith(box, {})
  const rotated = await keyWith(box, {})
  const graced = await keyWith(box, {})
  const expiring = await keyWith(box, { expires_at: new Date(clock.now() + 3600_000).toISOString() })
  const sockets = await Promise.all([revoked, rotated, graced, expiring].map(({ key }) => connect(box, {}, key)))
  const old = await Promise.all([revoked, rotated, graced, expiring].map(({ key }) => token(box, { expires_in: 3600 }, key)))
  await box.call('DELETE', `/v1/api-keys/${revoked.id}`)
  expect((await sockets[0]!.closed).code).toBe(4401)
  await box.call('POST', `/v1/api-keys/${rotated.id}/rotate`)
  expect((await sockets[1]!.closed).code).toBe(4401)
  await box.call('POST', `/v1/api-keys/${graced.id}/rotate`, { grace_seconds: 600 })
  await live(`${old[2]!.url}?token=${old[2]!.token}`)
  clock.ahead = 601_000
  expect((await sockets[2]!.closed).code).toBe(4401)
  clock.ahead = 3601_000
  expect((await sockets[3]!.closed).code).toBe(4401)
  clock.ahead = 602_000
  for (const { url, token: text } of old.slice(0, 3)) expect((await refusal(`${url}?token=${text}`)).status).toBe(401)
})

test('a key that was changed and cannot be read again opens nothing', async () => {
  const box = await appliance()
  const { id, key } = await keyWith(box, {})
  const sockets = [await connect(box, {}, key), await connect(box, {}, key)]
  const get = Object.getOwnPropertyDescriptor(SqliteDatabase.prototype, 'get')!.value as (query: Sql) => Promise<undefined>
  vi.spyOn(SqliteDatabase.prototype, 'get').mockImplementation(function (this: SqliteDatabase, query) {
    if (query.sql.includes('api_keys.id =')) return Promise.reject(new Error('the disk does not answer'))
    return get.call(this, query)
  })
  await box.call('DELETE', `/v1/api-keys/${id}`)
  for (const { closed } of sockets) expect((await closed).code).toBe(4401)
})

test('no event is heard after the key is revoked', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const { id, key } = await keyWith(box, {})
  const socket = await connect(box, {}, key)
  socket.say({ type: 'subscribe', channel: 'agent_events' })
  await socket.until('subscribed')
  await box.call('DELETE', `/v1/api-keys/${id}`)
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'x' }, 'x\n') })
  await socket.closed
  expect(socket.frames.map((frame) => frame.type)).toEqual(['subscribed'])
})

test('an identity that is deleted takes its sockets along; the account hears of it', async () => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const bound = await connect(box, { identity_id: ada.id })
  const both = await connect(box)
  for (const { id } of [ada, bob]) both.say({ type: 'subscribe', channel: 'agent_events', identity_id: id })
  const all = await connect(box)
  all.say({ type: 'subscribe', channel: 'agent_events' })
  await Promise.all([both.until('subscribed', 2), all.until('subscribed')])
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  expect((await bound.closed).code).toBe(4410)
  expect((await both.until('error'))[0]).toMatchObject({ code: 'identity_deleted', identity_id: ada.id })
  expect((await both.until('event'))[0].event).toMatchObject({ type: 'identity.deleted', identity_id: ada.id })
  await all.until('event')
  await box.call('DELETE', `/v1/identities/${bob.id}`)
  expect((await both.closed).code).toBe(4410)
  await all.until('event', 2)
})

test('there are only so many sockets, for a key and in all', async () => {
  const box = await appliance({ PILLARBOX_REALTIME__MAX_SOCKETS: '3', PILLARBOX_REALTIME__MAX_SOCKETS_PER_KEY: '2' })
  const first = await connect(box)
  await connect(box)
  const made = await token(box)
  expect(await refusal(`${made.url}?token=${made.token}`)).toMatchObject({ status: 429, error: { code: 'too_many_sockets' } })
  first.webSocket.close()
  await first.closed
  await connect(box)
  const other = await keyWith(box, {})
  await connect(box, {}, other.key)
  const more = await token(box, {}, other.key)
  expect(await refusal(`${more.url}?token=${more.token}`)).toMatchObject({ status: 429 })
})

test('a client that is silent is asked, and cut when it does not answer; a day is the longest life', async () => {
  const clock = movable()
  const box = await appliance({}, clock)
  const socket = await connect(box)
  const mute = await silent(await token(box))
  clock.ahead += 26_000
  await once(socket.webSocket, 'ping')
  await new Promise((resolve) => setTimeout(resolve, 100))
  clock.ahead += 36_000
  await once(mute, 'close')
  socket.say({ type: 'ping' })
  await socket.until('pong')
  clock.ahead += 24 * 3600_000
  expect((await socket.closed).code).toBe(4401)
})

test('sockets are no connections: as many calls as ever go beside them', async () => {
  const box = await appliance({ PILLARBOX_HTTP__MAX_CONNECTIONS: '4', PILLARBOX_REALTIME__MAX_SOCKETS_PER_KEY: '30' })
  const made = await token(box)
  for (let index = 0; index < 12; index += 1) await live(`${made.url}?token=${made.token}`)
  expect((await box.call('GET', '/v1/identities')).status).toBe(200)
})

test('a stop does not wait for ever for a client that does not answer the goodbye', async () => {
  const box = await appliance()
  const mute = await silent(await token(box))
  const closed = once(mute, 'close')
  await box.restart()
  await closed
  expect((await box.call('GET', '/healthz')).status).toBe(200)
})
