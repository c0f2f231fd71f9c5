import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { HeldClock } from '../support/held-clock.ts'
import { database, pair, type Pair, send } from './outgoing.ts'

const tomorrow = '2026-11-21T09:30:00.000Z'
const day = 24 * 3_600_000

const keyOf = async ({ box }: Pair, input: object = {}, key = box.key): Promise<{ id: string; key: string }> =>
  (await box.call<{ id: string; key: string }>('POST', '/v1/api-keys', input, { key })).body
const as = ({ key }: { key: string }) => ({ Authorization: `Bearer ${key}` })
const later = (world: Pair, subject: string, key: { key: string } = world.box) =>
  send(world, { to: world.bob.email, subject, send_at: tomorrow }, as(key))
const statusOf = async ({ box, ada }: Pair, id: string) =>
  (await box.call('GET', `/v1/identities/${ada.id}/emails/${id}`)).body['status'] as string
/** The subjects that Bob has got. */
const arrived = async ({ box, bob }: Pair): Promise<string[]> =>
  (await box.call('GET', `/v1/identities/${bob.id}/emails`)).body.data.map(({ subject }) => subject as string).toSorted()

test('what a key scheduled names it, and is cancelled with the key; what is queued goes on', async () => {
  const clock = new HeldClock()
  const world = await pair({}, clock)
  const { box, ada, bob } = world
  const stolen = await keyOf(world)
  const child = await keyOf(world, {}, stolen.key)
  const { body: sent } = await send(world, { to: bob.email, subject: 'queued' }, as(stolen))
  const theirs = [(await later(world, 'theirs', stolen)).body, (await later(world, 'of a child', child)).body]
  const { body: ours } = await later(world, 'ours')
  expect([sent, ...theirs].map((one) => one.created_by)).toEqual([stolen.id, stolen.id, child.id])
  expect(ours.created_by).not.toBe(stolen.id)
  const { body: told } = await box.call('DELETE', `/v1/api-keys/${stolen.id}`)
  expect(told).toMatchObject({ ended: { api_keys: 1, scheduled_emails: 2 } })
  for (const { id } of theirs) await expect.poll(() => statusOf(world, id)).toBe('cancelled')
  const { body: events } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.cancelled`)
  expect(events.data.map((event) => event['data'].id as string).toSorted()).toEqual(theirs.map(({ id }) => id).toSorted())
  clock.advance(2 * day)
  await box.settled()
  expect(await arrived(world)).toEqual(['ours', 'queued'])
})

test('what was sent ends with no key any more', async () => {
  const clock = new HeldClock()
  const world = await pair({}, clock)
  const [lent, other] = [await keyOf(world), await keyOf(world)]
  const { body: taken } = await world.box.call('POST', `/v1/api-keys/${lent.id}/rotate`, {}, { key: other.key })
  const { body: email } = await later(world, 'sent', { key: taken['key'] as string })
  const origins = () =>
    database(world.box, (db) => db.prepare('SELECT origin_id FROM credential_origins WHERE id = ?').all(email.id))
  expect(origins()).toEqual([{ origin_id: other.id }])
  clock.advance(2 * day)
  await world.box.settled()
  expect(await arrived(world)).toEqual(['sent'])
  expect(origins()).toEqual([])
})

test('it leaves all the same where the revocation keeps it, and where the key only expired', async () => {
  const clock = new HeldClock()
  const world = await pair({}, clock)
  const parting = await keyOf(world)
  const brief = await keyOf(world, { expires_at: new Date(clock.now() + 60_000).toISOString() })
  await later(world, 'kept', parting)
  await later(world, 'expired', brief)
  const { body: told } = await world.box.call('DELETE', `/v1/api-keys/${parting.id}?keep=true`)
  expect(told).toMatchObject({ ended: { scheduled_emails: 0 } })
  clock.advance(2 * day)
  await world.box.settled()
  expect(await arrived(world)).toEqual(['expired', 'kept'])
})

test('a former secret schedules nothing for a time when it works no more', async () => {
  const clock = new HeldClock()
  const world = await pair({}, clock)
  const { box, ada, bob } = world
  const stolen = await keyOf(world)
  const { body: before } = await later(world, 'before', stolen)
  const { body: owners } = await box.call('POST', `/v1/api-keys/${stolen.id}/rotate`, { grace_seconds: 60 })
  const end = new Date(clock.now() + 60_000).toISOString()
  const beyond = new Date(clock.now() + 60_001).toISOString()
  const input = (send_at: string) => ({ to: bob.email, subject: 'soon', send_at })
  const soon = await send(world, input(end), as(stolen))
  expect(soon.status).toBe(201)
  const path = `/v1/identities/${ada.id}/emails/${soon.body.id}`
  for (const told of [
    await send(world, input(beyond), as(stolen)),
    await box.call('PATCH', path, { send_at: beyond }, { key: stolen.key }),
  ]) {
    expect(told.body['error']).toMatchObject({ status: 403, code: 'beyond_own', param: 'send_at' })
    expect(told.body['error']['message']).toContain(end)
  }
  expect((await box.call('PATCH', path, { send_at: beyond }, { key: owners.key as string })).status).toBe(200)
  expect([await statusOf(world, before.id), (await later(world, 'after', { key: owners.key as string })).status]).toEqual([
    'scheduled',
    201,
  ])
})

test('nor does a key that one made, whatever becomes of the key above it', async () => {
  const clock = new HeldClock()
  const world = await pair({}, clock)
  const { box, ada, bob } = world
  const stolen = await keyOf(world)
  const { body: owners } = await box.call('POST', `/v1/api-keys/${stolen.id}/rotate`, { grace_seconds: 60 })
  const end = new Date(clock.now() + 60_000).toISOString()
  const child = await keyOf(world, {}, stolen.key)
  const brief = await keyOf(world, { expires_at: new Date(clock.now() + 30_000).toISOString() }, child.key)
  const schedule = (send_at: string, key: { key: string }) => send(world, { to: bob.email, subject: 'soon', send_at }, as(key))
  const { body: soon } = await schedule(end, child)
  expect(soon.status).toBe('scheduled')
  const refused = async () => {
    for (const told of [
      await schedule(tomorrow, child),
      await schedule(tomorrow, brief),
      await box.call('PATCH', `/v1/identities/${ada.id}/emails/${soon.id}`, { send_at: tomorrow }, { key: child.key }),
    ]) {
      expect(told.body['error']).toMatchObject({ status: 403, code: 'beyond_own', param: 'send_at' })
      expect(told.body['error']['message']).toContain(end)
    }
  }
  await refused()
  await box.call('POST', `/v1/api-keys/${stolen.id}/rotate`, {}, { key: owners['key'] as string })
  await refused()
})

test('nothing leaves of a box that was stopped before it had cancelled all', async () => {
  const clock = new HeldClock()
  const world = await pair({}, clock)
  const stolen = await keyOf(world)
  const lent = await keyOf(world)
  const rotate = async (by: string) =>
    (await world.box.call<{ key: string }>('POST', `/v1/api-keys/${lent.id}/rotate`, {}, { key: by })).body
  const { body: theirs } = await later(world, 'theirs', stolen)
  const { body: more } = await later(world, 'with a secret that it knew', await rotate(stolen.key))
  await later(world, 'ours', await rotate(world.box.key))
  database(world.box, (db) => db.prepare('UPDATE api_keys SET revoked_at = ? WHERE id = ?').run(tomorrow, stolen.id))
  clock.advance(2 * day)
  await world.box.settled()
  expect(await arrived(world)).toEqual(['ours'])
  await world.box.app.jobs.find(({ name }) => name === 'cancel-mail-of-ended-keys')!.run()
  for (const { id } of [theirs, more]) expect(await statusOf(world, id)).toBe('cancelled')
  expect(await arrived(world)).toEqual(['ours'])
})

test('a message whose file was still on its way when its key was revoked is not sent', async () => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const world = await pair({ PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8' })
  const stolen = await keyOf(world)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/bill`
  const asked = once(server, 'request')
  const sending = send(world, { to: world.bob.email, attachments: [{ filename: 'bill', url }] }, as(stolen))
  const [, response] = (await asked) as [unknown, { end: (text: string) => void }]
  await world.box.call('DELETE', `/v1/api-keys/${stolen.id}`)
  response.end('PDF')
  const { status, body } = await sending
  expect([status, body.error]).toMatchObject([401, { code: 'invalid_key' }])
  expect((await world.box.call('GET', `/v1/identities/${world.ada.id}/emails`)).body.data).toEqual([])
})
