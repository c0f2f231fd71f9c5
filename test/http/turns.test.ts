import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { MessageChannel } from 'node:worker_threads'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { type AnyRoute, routeOf } from '../../src/http/route.ts'
import { openToybox, type Toybox, toyRoutes } from './toy-box.ts'

const route = routeOf('Toys')

/** Milliseconds for which a call of each path keeps the main thread busy. */
const costs = { '/dear': 4, '/dearest': 10, '/cheap': 0.1, '/fair': 1 }

let box: Toybox
let held: Socket[] = []

afterEach(async () => {
  for (const socket of held) socket.destroy()
  held = []
  await box.server.stop()
})

/** A box with calls that cost; `run` counts those that were begun, by path. */
async function open(...more: AnyRoute[]): Promise<{ run: Map<string, number> }> {
  const run = new Map<string, number>()
  const reply = z.object({ path: z.string() })
  const routes = Object.entries(costs).flatMap(([path, milliseconds]): AnyRoute[] => {
    const handle = async (): Promise<{ path: string }> => {
      run.set(path, (run.get(path) ?? 0) + 1)
      for (const until = performance.now() + milliseconds; performance.now() < until;);
      return { path }
    }
    const alike = { reply, handle }
    const body = z.strictObject({ text: z.string() })
    return [
      route('GET', path, { ...alike, scope: 'identities:read', summary: `Get ${path}` }),
      route('POST', path, { ...alike, scope: 'identities:write', summary: `Post ${path}`, body }),
      route('GET', `/open${path}`, { ...alike, scope: 'public', rate: 'document', summary: `Get ${path} openly` }),
    ]
  })
  const played = { made: 0, aborted: [], release: undefined, held: Promise.resolve() }
  box = await openToybox(
    { trusted_proxies: ['127.0.0.0/8'], document_rate_limit: 0 },
    { routes: [...routes, ...more, ...toyRoutes(played)] },
  )
  return { run }
}

/** Sends all of the calls at once, in this order; answers whose they were in the order in which they were answered. */
async function answered(calls: { whose: string; send: () => Promise<Response> }[]): Promise<string[]> {
  const order: string[] = []
  // a connection for each is open before: a busy machine takes its time to accept so many
  await Promise.all(calls.map(() => box.call('GET', '/v1/open/cheap', { key: null })))
  await Promise.all(
    calls.map(async ({ whose, send }) => {
      const { status } = await send()
      expect(status).toBe(200)
      order.push(whose)
    }),
  )
  return order
}

const many = <T>(count: number, made: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => made(n))

const request = (path: string): string => `GET /v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free\r\n\r\n`

/** Opens a connection on which these requests of one account are written ahead. */
async function ahead(path: string, count: number): Promise<Socket> {
  const socket = connect(box.port, '127.0.0.1')
  held.push(socket.on('error', () => undefined))
  await once(socket, 'connect')
  socket.write(request(path).repeat(count))
  return socket
}

test('who comes while another account has two hundred dear calls in hand is answered before most of them', async () => {
  await open()
  const order = await answered([
    ...many(200, () => ({ whose: 'many', send: () => box.call('GET', '/v1/dear', { key: 'free' }) })),
    { whose: 'one', send: () => box.call('GET', '/v1/dear', { key: 'other' }) },
  ])
  expect(order.indexOf('one')).toBeLessThan(40)
})

test('so it is with calls that have bodies', async () => {
  await open()
  const body = { text: 'x'.repeat(10_000) }
  const order = await answered([
    ...many(200, () => ({ whose: 'many', send: () => box.call('POST', '/v1/dear', { key: 'free', body }) })),
    { whose: 'one', send: () => box.call('POST', '/v1/dear', { key: 'other', body }) },
  ])
  expect(order.indexOf('one')).toBeLessThan(40)
})

test('calls that are woken at once go on one after the other, and who comes meanwhile is answered before most of them', async () => {
  const { promise, resolve: wake } = Promise.withResolvers<void>()
  let asleep = 0
  const waiting = route('GET', '/waiting', {
    scope: 'identities:read',
    summary: 'Wait for all',
    handle: async ({ turn }) => {
      asleep += 1
      if (asleep === 200) wake()
      await promise
      await turn()
      for (const until = performance.now() + costs['/dear']; performance.now() < until;);
      return {}
    },
  })
  await open(waiting)
  let before = 0
  const calls = many(200, () => box.call('GET', '/v1/waiting', { key: 'free' }).then(() => (before += 1)))
  await promise
  expect((await box.call('GET', '/v1/cheap', { key: 'other' })).status).toBe(200)
  expect(before).toBeLessThan(100)
  await Promise.all(calls)
})

const from = (address: string) => () => box.call('GET', '/v1/open/dear', { key: null, headers: { 'X-Forwarded-For': address } })

test('callers without a key take turns by network', async () => {
  await open()
  const order = await answered([
    ...many(200, (n) => ({ whose: 'many', send: from(`2001:db8:1:${n.toString(16)}::1`) })),
    { whose: 'neighbour', send: from('2001:db8:2::1') },
    { whose: 'account', send: () => box.call('GET', '/v1/dear', { key: 'other' }) },
  ])
  expect(order.indexOf('neighbour')).toBeLessThan(40)
  expect(order.indexOf('account')).toBeLessThan(40)
})

test('who has used much of the time goes behind who has not, however many calls each has', async () => {
  await open()
  const order = await answered(
    many(60, () => [
      { whose: 'dear', send: () => box.call('GET', '/v1/dearest', { key: 'free' }) },
      { whose: 'cheap', send: () => box.call('GET', '/v1/cheap', { key: 'other' }) },
    ]).flat(),
  )
  expect(order.slice(0, order.lastIndexOf('cheap')).filter((whose) => whose === 'dear').length).toBeLessThan(35)
})

/** Keeps each turn of the event loop busy for so many milliseconds, and has an event in each. */
function occupied(milliseconds: number): { turns: () => number; end: () => void } {
  const { port1, port2 } = new MessageChannel()
  let turns = 0
  port1.on('message', () => {
    turns += 1
    for (const until = performance.now() + milliseconds; performance.now() < until;);
    setImmediate(() => port2.postMessage(null, []))
  })
  port2.postMessage(null, [])
  return { turns: () => turns, end: () => port1.close() }
}

test('who waits for a turn does not wait for other work that keeps the event loop busy', async () => {
  await open()
  const work = occupied(5)
  onTestFinished(work.end)
  const before = many(5, () => box.call('GET', '/v1/dearest', { key: 'free' }))
  await before[0]
  const began = work.turns()
  await box.call('GET', '/v1/cheap', { key: 'other' })
  expect(work.turns() - began).toBeLessThan(100)
  await Promise.all(before)
})

test('a call whose client has gone is never begun', async () => {
  const { run } = await open()
  const sockets = await Promise.all(many(100, () => ahead('/dear', 1)))
  await once(sockets[0]!, 'data')
  for (const socket of sockets) socket.destroy()
  // the last in the line of the same account
  expect((await box.call('GET', '/v1/dear', { key: 'free' })).status).toBe(200)
  expect(run.get('/dear')).toBeLessThan(60)
})

test('a line has an end: what is beyond it is refused, and nobody else is', async () => {
  await open()
  const sockets = await Promise.all(many(240, () => ahead('/fair', 8)))
  const texts = Promise.all(
    sockets.map(async (socket) => {
      let text = ''
      socket.on('data', (piece: Buffer) => (text += piece.toString()))
      await expect.poll(() => text.split('HTTP/1.1 ').length - 1).toBe(8)
      return text
    }),
  )
  const other = box.call('GET', '/v1/fair', { key: 'other' })
  const refused = (await texts).join('').match(/HTTP\/1.1 429[^]*?\}\}/g)
  expect(refused!.length).toBeGreaterThan(100)
  expect(refused![0]).toContain('"code":"too_many_waiting"')
  expect(refused![0]).toMatch(/Retry-After: 1\r\n/)
  expect((await other).status).toBe(200)
})

test('what waits when the box stops is told so', async () => {
  await open()
  const sockets = await Promise.all(many(100, () => ahead('/cheap', 1)))
  // all of them are accepted, and answered once
  await Promise.all(sockets.map((socket) => once(socket, 'data')))
  let text = ''
  for (const socket of sockets) socket.on('data', (piece: Buffer) => (text += piece.toString()))
  const closed = Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve))))
  for (const socket of sockets) socket.write(request('/dear'))
  await once(sockets[0]!, 'data')
  await Promise.all([box.server.stop(), closed])
  const refused = text.match(/HTTP\/1\.1 500[^]*?\}\}/g)
  expect(refused!.length).toBeGreaterThan(40)
  expect(refused![0]).toContain('"code":"restarting"')
})
