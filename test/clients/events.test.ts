import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { type Event, type EventStream, PillarboxError } from '../../clients/typescript/src/index.ts'
import { type Appliance, appliance, deliver, message } from '../support/appliance.ts'
import { freePort } from '../support/free-port.ts'
import { identity } from '../support/live.ts'
import { clientOf, Network } from './support.ts'

const open: EventStream[] = []
afterEach(() => {
  for (const stream of open.splice(0)) stream.close()
})

/** The next so many events. */
async function next(stream: EventStream, count: number): Promise<Event[]> {
  open.push(stream)
  const found: Event[] = []
  if (count === 0) return found
  for await (const event of stream) {
    found.push(event)
    if (found.length === count) break
  }
  return found
}

/** A box behind a network that can be cut. */
async function behind(): Promise<{ box: Appliance; network: Network; base: { url: string; key: string } }> {
  const network = await Network.start()
  network.target = await freePort()
  const box = await appliance({ PILLARBOX_PUBLIC_URL: network.url, PILLARBOX_HTTP__LISTEN: `127.0.0.1:${network.target}` })
  return { box, network, base: { url: network.url, key: box.key } }
}

function subjects(events: readonly Event[]): unknown[] {
  return events.map(({ data }) => (data as { subject?: unknown }).subject)
}

async function mail(box: Appliance, to: string, from: number, count: number): Promise<string[]> {
  const sent: string[] = []
  for (let index = from; index < from + count; index += 1) {
    await deliver(box.smtp, { to, raw: message({ Subject: `Number ${index}` }, 'x\n') })
    sent.push(`Number ${index}`)
  }
  return sent
}

test('events come as they happen, typed by their name', async () => {
  const box = await appliance()
  const { email } = await identity(box)
  const stream = clientOf(box).events({ types: ['email.received'] })
  await stream.ready
  await mail(box, email, 0, 1)
  const [event] = await next(stream, 1)
  if (event?.type !== 'email.received') throw new Error(`a ${event?.type}`)
  expect(event.data.subject).toBe('Number 0')
})

test('none is lost and none comes twice when the connection is cut again and again, in the middle of frames too', async () => {
  const { box, network, base } = await behind()
  const { email } = await identity(box)
  const cuts: string[] = []
  const stream = clientOf(base).events({ types: ['email.received'], onReconnect: ({ message: why }) => cuts.push(why) })
  await stream.ready
  const received = next(stream, 40)
  const sent: string[] = []
  for (let round = 0; round < 8; round += 1) {
    const before = cuts.length
    network.allowance = 300 + 1500 * round
    sent.push(...(await mail(box, email, sent.length, 5)))
    await expect.poll(() => cuts.length).toBeGreaterThan(before)
    network.allowance = Infinity
  }
  expect(subjects(await received)).toEqual(sent)
  expect(cuts.length).toBeGreaterThanOrEqual(8)
})

test('what happens while the box is restarted comes afterwards', async () => {
  const { box, base } = await behind()
  const { email } = await identity(box)
  const stream = clientOf(base).events({ types: ['email.received'] })
  await stream.ready
  const sent = await mail(box, email, 0, 2)
  await box.restart()
  sent.push(...(await mail(box, email, 2, 2)))
  expect(subjects(await next(stream, 4))).toEqual(sent)
})

test('a program that starts again goes on after the event it handled last', async () => {
  const box = await appliance()
  const { id, email } = await identity(box)
  const before = clientOf(box).events({ identity: { id }, channel: 'email_messages' })
  await before.ready
  await mail(box, email, 0, 3)
  const [first] = await next(before, 1)
  expect(first!.data).toMatchObject({ subject: 'Number 0' })
  const after = clientOf(box).events({ identity: id, channel: 'email_messages', since: first!.id })
  expect(subjects(await next(after, 2))).toEqual(['Number 1', 'Number 2'])
})

test('a program that takes its events slowly gets them all, and leaves most of them at the box until then', async () => {
  const box = await appliance()
  const { id } = await identity(box)
  let connections = 0
  const counted = new Proxy(WebSocket, {
    construct(Target, given: [string, string[]]) {
      connections += 1
      return new Target(...given)
    },
  })
  const client = clientOf(box, { WebSocket: counted })
  const stream = client.events({ types: ['identity.updated'] })
  await stream.ready
  for (let index = 0; index < 1300; index += 50) {
    await Promise.all(Array.from({ length: 50 }, () => client.identities.update(id, { metadata: { at: index } })))
  }
  expect(connections).toBe(1)
  const events = await next(stream, 1300)
  // the first was closed when a thousand waited
  expect(connections).toBe(2)
  expect(new Set(events.map((event) => event.id)).size).toBe(1300)
})

test('what another attempt cannot mend is thrown', async () => {
  const box = await appliance()
  const client = clientOf(box)
  const { id } = await identity(box)
  const gone = client.events({ identity: id })
  await gone.ready
  await client.identities.delete(id)
  const error: unknown = await (async () => {
    for await (const event of gone) expect(event.type).toMatch(/^identity\./)
  })().catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'identity_deleted' })
  expect(error).toBeInstanceOf(PillarboxError)
  const expired = client.events({ since: 'evt_01jd3v8m2ef1pbx9mz5k7q4w6a' })
  await expect(expired.ready).rejects.toMatchObject({ code: 'since_expired' })
  await expect(next(expired, 1)).rejects.toMatchObject({ code: 'since_expired' })
  await expect(next(clientOf({ ...box, key: 'pbx_wrong' }).events(), 1)).rejects.toMatchObject({ status: 401 })
  await expect(client.events({ identity: 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a' }).ready).rejects.toMatchObject({ status: 404 })
})

test('the signal ends the events with its reason, and close ends them without one', async () => {
  const box = await appliance()
  const aborter = new AbortController()
  const stream = clientOf(box).events({ signal: aborter.signal })
  await stream.ready
  const waiting = next(stream, 1)
  aborter.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  await expect(next(clientOf(box).events({ signal: AbortSignal.abort(new Error('before')) }), 1)).rejects.toThrow('before')
  const other = clientOf(box).events()
  await other.ready
  other.close()
  expect(await next(other, 1)).toEqual([])
})

test('a key that is revoked while it listens is told so', async () => {
  const box = await appliance()
  const made = await clientOf(box).apiKeys.create({ label: 'listener', scopes: ['messages:read'] })
  const stream = clientOf({ ...box, key: made.key }).events()
  await stream.ready
  const waiting = next(stream, 1)
  await clientOf(box).apiKeys.revoke(made.id)
  await expect(waiting).rejects.toMatchObject({ status: 401, type: 'unauthorized' })
})

test.each(['no JSON', 'null', '{"type":"event"}', '{"type":"event","event":null}'])(
  'a frame that no box sends, %s, ends the events with an error, and not the program',
  async (frame) => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    onTestFinished(() => server.close())
    server.on('connection', (socket) => {
      socket.send(frame)
      socket.send('{"type":"subscribed","since":null}')
    })
    await once(server, 'listening')
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
    const answer = async (): Promise<Response> => Response.json({ token: 'rtt_x', url })
    const stream = clientOf({ url: 'http://127.0.0.1:9', key: 'pbx_x' }, { fetch: answer }).events()
    await expect(next(stream, 1)).rejects.toMatchObject({ code: 'malformed_frame' })
  },
)
