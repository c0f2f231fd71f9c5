import { once } from 'node:events'
import { expect, test, vi } from 'vitest'
import { Access } from '../../src/realtime/access.ts'
import { PlainSession } from '../../src/realtime/plain.ts'
import type { Sql } from '../../src/store/database.ts'
import { BoxDatabase } from '../support/box-database.ts'
import { appliance, deliver, message } from '../support/appliance.ts'
import { refusal, silent } from '../support/handshake.ts'
import { connect, identity, keyWith, live, token } from '../support/live.ts'
import { movable } from '../support/held-clock.ts'

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

test('nothing is sent to a socket whose key or identity has expired, from that moment on', async () => {
  const clock = movable()
  const box = await appliance({}, clock)
  const end = new Date(clock.now() + 3600_000).toISOString()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const expiring = await keyWith(box, { expires_at: end })
  const patch = (expires_at: string) => box.call('PATCH', `/v1/identities/${ada.id}`, { expires_at })
  expect((await patch(end)).status).toBe(200)
  const sockets = [await connect(box, {}, expiring.key), await connect(box, { identity_id: ada.id }), await connect(box)]
  for (const socket of sockets) socket.say({ type: 'subscribe', channel: 'agent_events' })
  for (const socket of sockets) await socket.until('subscribed')
  const later = await connect(box, { identity_id: bob.id })
  clock.ahead = 3601_000
  // heard at once, and not only once a second
  await box.call('PATCH', `/v1/identities/${bob.id}`, { name: 'Bob B' })
  await sockets[2]!.until('event')
  for (const socket of [sockets[0]!, sockets[1]!]) socket.say({ type: 'ping' })
  for (const socket of [sockets[0]!, sockets[1]!]) {
    expect((await socket.closed).code).toBe(4401)
    expect(socket.frames.filter(({ type }) => type === 'event' || type === 'pong')).toEqual([])
  }
  later.say({ type: 'ping' })
  await later.until('pong')
})

test('a socket stays open when its identity is given a later end, and closes at an earlier one', async () => {
  const clock = movable()
  const box = await appliance({}, clock)
  const ada = await identity(box, 'Ada')
  const patch = async (hours: number): Promise<void> => {
    const expires_at = new Date(clock.now() + hours * 3600_000).toISOString()
    expect((await box.call('PATCH', `/v1/identities/${ada.id}`, { expires_at })).status).toBe(200)
    await box.settled()
  }
  await patch(1)
  const socket = await connect(box, { identity_id: ada.id })
  await patch(2)
  clock.ahead += 3601_000
  socket.say({ type: 'ping' })
  await socket.until('pong')
  await patch(0.1)
  clock.ahead += 600_000
  socket.say({ type: 'ping' })
  expect((await socket.closed).code).toBe(4401)
  expect(socket.frames.filter(({ type }) => type === 'pong')).toHaveLength(1)
})

test('a key that was changed and cannot be read again opens nothing', async () => {
  const box = await appliance()
  const { id, key } = await keyWith(box, {})
  const sockets = [await connect(box, {}, key), await connect(box, {}, key)]
  const get = Object.getOwnPropertyDescriptor(BoxDatabase.prototype, 'get')!.value as (query: Sql) => Promise<undefined>
  vi.spyOn(BoxDatabase.prototype, 'get').mockImplementation(function (this: typeof BoxDatabase.prototype, query) {
    if (query.sql.includes('api_keys.id =')) return Promise.reject(new Error('the disk does not answer'))
    return get.call(this, query)
  })
  await box.call('DELETE', `/v1/api-keys/${id}`)
  for (const { closed } of sockets) expect((await closed).code).toBe(4401)
})

test('sockets of other keys are not looked at when a key with many others is revoked', async () => {
  const box = await appliance()
  const maker = await keyWith(box, {})
  for (let count = 0; count < 50; count += 1) await box.call('POST', '/v1/api-keys', {}, { key: maker.key })
  for (let count = 0; count < 20; count += 1) await connect(box)
  const own = await connect(box, {}, maker.key)
  const looked = vi.spyOn(PlainSession.prototype, 'grants', 'get')
  const { body } = await box.call('DELETE', `/v1/api-keys/${maker.id}`)
  expect(body['ended']).toMatchObject({ api_keys: 50 })
  expect((await own.closed).code).toBe(4401)
  // each socket is also looked at once a second
  expect(looked.mock.calls.length).toBeLessThan(1000)
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

test('frames wait while it is read whether a key that was changed still holds', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const [rotated, revoked] = [await keyWith(box, {}), await keyWith(box, {})]
  const [graced, ended, other] = [await connect(box, {}, rotated.key), await connect(box, {}, revoked.key), await connect(box)]
  for (const socket of [graced, ended, other]) {
    socket.say({ type: 'subscribe', channel: 'email_messages' })
    await socket.until('subscribed')
  }
  const answered = Promise.withResolvers<undefined>()
  const until = Object.getOwnPropertyDescriptor(Access.prototype, 'until')!.value as Access['until']
  vi.spyOn(Access.prototype, 'until').mockImplementation(async function (this: Access, grant) {
    await answered.promise
    return until.call(this, grant)
  })
  await box.call('POST', `/v1/api-keys/${rotated.id}/rotate`, { grace_seconds: 600 })
  await box.call('DELETE', `/v1/api-keys/${revoked.id}`)
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'x' }, 'x\n') })
  await other.until('event')
  graced.say({ type: 'ping' })
  other.say({ type: 'ping' })
  await other.until('pong')
  for (const { frames } of [graced, ended]) expect(frames.map(({ type }) => type)).toEqual(['subscribed'])
  answered.resolve(undefined)
  await graced.until('pong')
  expect(graced.frames.map(({ type }) => type)).toEqual(['subscribed', 'event', 'pong'])
  expect((await ended.closed).code).toBe(4401)
  expect(ended.frames.map(({ type }) => type)).toEqual(['subscribed'])
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
  // what it says comes behind the answer it gave by itself
  socket.say({ type: 'ping' })
  await socket.until('pong')
  clock.ahead += 36_000
  await once(mute, 'close')
  socket.say({ type: 'ping' })
  await socket.until('pong', 2)
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
