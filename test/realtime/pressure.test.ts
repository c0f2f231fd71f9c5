import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, test, vi } from 'vitest'
import { EventLog } from '../../src/events/log.ts'
import type { Sql } from '../../src/store/database.ts'
import { BoxDatabase } from '../support/box-database.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { connect, identity, live, type Live, token } from '../support/live.ts'

/** What a figure of the box says now. */
async function figure(box: Appliance, name: string): Promise<number> {
  const line = (await box.app.metrics.text()).split('\n').find((text) => text.startsWith(`${name} `))
  return Number(line?.split(' ')[1])
}

async function reached(done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 20))
}

test('who does not read is closed with 1013, costs a bounded memory, and misses nothing by coming back', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const slow = await connect(box)
  slow.say({ type: 'subscribe', channel: 'email_messages' })
  const [{ since }] = await slow.until('subscribed')
  slow.webSocket.pause()
  const count = 60
  const body = `${'All work and no play makes a dull box. '.repeat(4)}\n`.repeat(1200)
  for (let index = 0; index < count; index += 1) {
    expect(await deliver(box.smtp, { to: ada.email, raw: message({ Subject: `Number ${index}` }, body) })).toContain('250')
  }
  await reached(async () => (await figure(box, 'pillarbox_realtime_slow_total')) === 1)
  expect(await figure(box, 'pillarbox_realtime_waiting_bytes')).toBeLessThan(3 * 1024 * 1024)
  slow.webSocket.resume()
  expect((await slow.closed).code).toBe(1013)
  const got = slow.frames.filter((frame) => frame.type === 'event').map(({ event }) => event)
  expect(got.length).toBeLessThan(count)
  const again = await connect(box)
  again.say({ type: 'subscribe', channel: 'email_messages', since: got.at(-1)?.id ?? since })
  got.push(...(await again.until('event', count - got.length)).map(({ event }) => event))
  expect(got.map((event) => event.data.subject)).toEqual(Array.from({ length: count }, (_, index) => `Number ${index}`))
})

test('a reader that pauses while it is given what is stored is waited for, not closed', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const body = `${'All work and no play makes a dull box. '.repeat(4)}\n`.repeat(1200)
  for (let index = 0; index < 40; index += 1)
    await deliver(box.smtp, { to: ada.email, raw: message({ Subject: `Number ${index}` }, body) })
  const socket = await connect(box)
  socket.webSocket.pause()
  const since = '2001-01-01T00:00:00Z'
  for (const identity_id of [ada.id, undefined]) socket.say({ type: 'subscribe', channel: 'email_messages', identity_id, since })
  socket.say({ type: 'subscribe', channel: 'agent_events' })
  await new Promise((resolve) => setTimeout(resolve, 300))
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Number 40' }, 'meanwhile\n') })
  expect(await figure(box, 'pillarbox_realtime_waiting_bytes')).toBeLessThan(2 * 1024 * 1024)
  socket.webSocket.resume()
  const heard = (await socket.until('event', 83)).map(({ channel, event }) => `${channel} ${event.data.subject}`)
  const all = Array.from({ length: 41 }, (_, index) => `email_messages Number ${index}`)
  expect(heard.toSorted()).toEqual([...all, ...all, 'agent_events Number 40'].toSorted())
  expect([...new Set(heard)].filter((text) => text.startsWith('email'))).toEqual(all)
})

test('however many catch up at once, only one of them looks through the log in a turn of the event loop', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'))
  database.exec(`WITH RECURSIVE many (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM many WHERE number < 100000)
    INSERT INTO events (id, type, account_id, identity_id, created_at, data)
    SELECT 'evt_' || number, 'identity.updated', 'acct_other', NULL, '2026-01-01T00:00:00.000Z', '{}' FROM many`)
  database.close()
  await box.call('PATCH', `/v1/identities/${ada.id}`, { name: 'Ada L' })
  const sockets = await Promise.all(Array.from({ length: 10 }, () => connect(box)))
  const { all } = Object.getOwnPropertyDescriptors(BoxDatabase.prototype)
  const looks: number[] = []
  vi.spyOn(BoxDatabase.prototype, 'all').mockImplementation(function (this: typeof BoxDatabase.prototype, query) {
    if (query.sql.includes('type IN')) looks.push(turn)
    return (all.value as (query: Sql) => Promise<never[]>).call(this, query)
  })
  let turn = 0
  let counting = true
  const count = (): void => {
    turn += 1
    if (counting) setImmediate(count)
  }
  count()
  for (const socket of sockets) socket.say({ type: 'subscribe', channel: 'agent_events', since: '2001-01-01T00:00:00Z' })
  for (const socket of sockets) {
    expect((await socket.until('event', 2)).map(({ event }) => event.type)).toEqual(['identity.created', 'identity.updated'])
  }
  counting = false
  const begun = new Set(looks.slice(0, 10))
  const crowded = looks.filter((at, index) => looks.indexOf(at) !== index && !begun.has(at))
  expect(looks.length).toBeGreaterThan(100)
  expect(crowded).toEqual([])
})

test('what many resume from is read once, and what was deleted meanwhile is sent to nobody', async () => {
  const box = await appliance({ PILLARBOX_REALTIME__MAX_SOCKETS_PER_KEY: '100' })
  const ada = await identity(box, 'Ada')
  for (const Subject of ['One', 'Two']) await deliver(box.smtp, { to: ada.email, raw: message({ Subject }, 'x\n') })
  const resumed = async (): Promise<string[]> => {
    const socket = await connect(box)
    socket.say({ type: 'subscribe', channel: 'email_messages', since: '2001-01-01T00:00:00Z' })
    return (await socket.until('event', 2)).map(({ event }) => event.data.subject)
  }
  const read = vi.spyOn(EventLog.prototype, 'findAt')
  const heard = await Promise.all(Array.from({ length: 40 }, resumed))
  expect(heard).toEqual(Array.from({ length: 40 }, () => ['One', 'Two']))
  expect(read.mock.calls.length).toBeLessThan(20)
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  const { id } = (body['data'] as { id: string; subject: string }[]).find(({ subject }) => subject === 'One')!
  expect((await box.call('DELETE', `/v1/identities/${ada.id}/emails/${id}`)).status).toBeLessThan(300)
  expect(await resumed()).toEqual([undefined, 'Two'])
})

test('2,000 sockets hear of one message, each once', async () => {
  const box = await appliance({ PILLARBOX_REALTIME__MAX_SOCKETS_PER_KEY: '2000' })
  const ada = await identity(box, 'Ada')
  const made = await token(box, { expires_in: 3600 })
  const sockets: Live[] = []
  for (let index = 0; index < 2000; index += 100) {
    sockets.push(...(await Promise.all(Array.from({ length: 100 }, () => live(`${made.url}?token=${made.token}`)))))
  }
  for (const socket of sockets) socket.say({ type: 'subscribe', channel: 'email_messages', identity_id: ada.id })
  await Promise.all(sockets.map((socket) => socket.until('subscribed')))
  const stringify = vi.spyOn(JSON, 'stringify')
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'To all of you' }, 'x\n') })
  await Promise.all(sockets.map((socket) => socket.until('event')))
  expect(stringify.mock.calls.length).toBeLessThan(100)
  stringify.mockRestore()
  expect(new Set(sockets.map(({ frames }) => frames.length))).toEqual(new Set([2]))
  expect(await figure(box, 'pillarbox_realtime_sockets')).toBe(2000)
  expect(await figure(box, 'pillarbox_realtime_frames_total')).toBe(4000)
})

test('1,000 waits ask the store no more while they wait than a box that rests', async () => {
  const box = await appliance({ PILLARBOX_HTTP__MAX_CONNECTIONS: '3000' })
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const waits: Promise<{ body: { item: { subject: string } } }>[] = []
  const { body: second } = await box.call('POST', '/v1/api-keys', {})
  for (let index = 0; index < 1000; index += 100) {
    const key = index < 500 ? box.key : (second['key'] as string)
    const one = () => box.call('GET', `/v1/identities/${ada.id}/wait?timeout=100`, undefined, { key })
    waits.push(...Array.from({ length: 100 }, () => one() as never))
    await reached(async () => (await figure(box, 'pillarbox_waiting_calls')) === index + 100)
  }
  const reads = [vi.spyOn(BoxDatabase.prototype, 'all'), vi.spyOn(BoxDatabase.prototype, 'get')]
  const asked = (): number => reads.reduce((sum, { mock }) => sum + mock.calls.length, 0)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  // what the box does by itself may fall into that second
  expect(asked()).toBeLessThan(20)
  await deliver(box.smtp, { to: bob.email, raw: message({ Subject: 'For another' }, 'x\n') })
  expect(asked()).toBeLessThan(70)
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'At last' }, 'x\n') })
  const answers = await Promise.all(waits)
  expect(new Set(answers.map(({ body }) => body.item.subject))).toEqual(new Set(['At last']))
  // each asks once whether its key still lives, before it answers
  expect(asked()).toBeLessThan(1100)
})
