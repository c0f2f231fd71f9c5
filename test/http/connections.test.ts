import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { generate } from 'selfsigned'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { networkOf } from '../../src/net/networks.ts'
import { admitNetwork } from '../../src/net/reading-turns.ts'
import { OpenConnections } from '../../src/http/server/open-connections.ts'
import { exchange, openToybox, type Toybox } from './toy-box.ts'

const asked = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
let box: Toybox
let held: Socket[] = []

beforeEach(() => {
  held = []
})

afterEach(async () => {
  for (const socket of held) socket.destroy()
  await box.server.stop()
})

/** Opens a connection from this address of loopback, and says nothing on it. */
async function hold(port: number, from = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  held.push(socket.on('error', () => undefined))
  await once(socket, 'connect')
  return socket
}

/** What the box answers to a question on this connection; empty when it closed it. */
async function answerOn(socket: Socket): Promise<string> {
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  socket.write(asked)
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve))
  return answer
}

test('one address cannot hold all connections; others are still served, and so is it when it lets go', async () => {
  box = await openToybox({ max_connections_per_address: 3 })
  for (let count = 0; count < 3; count++) await hold(box.port)
  expect(await exchange(box.port, asked)).toBe('')
  expect(await answerOn(await hold(box.port, '127.0.0.2'))).toContain('200 OK')

  held[0]!.destroy()
  await expect.poll(() => exchange(box.port, asked)).toContain('200 OK')
})

test('who holds many connections gives way to others when the port is full, and gets none more', async () => {
  box = await openToybox({ max_connections: 6, max_connections_per_address: 100, uncounted: [] })
  const [oldest] = await Promise.all([hold(box.port, '127.0.0.2'), hold(box.port, '127.0.0.3')])
  for (let count = 0; count < 4; count++) await hold(box.port, '127.0.0.2')
  const closed = once(oldest, 'close')
  expect(await answerOn(await hold(box.port, '127.0.0.4'))).toContain('200 OK')
  await closed
  await hold(box.port, '127.0.0.4')
  // as many as all others have: no network gives way to one of those that have most
  expect(await answerOn(await hold(box.port, '127.0.0.2'))).toBe('')
  expect(await answerOn(held[1]!)).toContain('200 OK')
})

/** Up to so many connections, of which strangers open one after the other; `closed` are the addresses of those that gave way. */
function crowded(max: number): { add: (remoteAddress: string) => void; closed: string[] } {
  const open = new OpenConnections()
  const closed: string[] = []
  let port = 0
  const add = (remoteAddress: string): void => {
    const socket = { remoteAddress, remotePort: (port += 1), once: () => socket, destroy: () => closed.push(remoteAddress) }
    open.add(socket as unknown as Socket, { max, trusted: false })
  }
  return { add, closed }
}

test('who has many /64s of one /48 counts as one, and gives way', () => {
  const { add, closed } = crowded(40)
  for (let number = 0; number < 37; number += 1) add(`2001:db8:1:${number.toString(16)}::1`)
  for (let number = 0; number < 2; number += 1) add('2001:db8:2::1')
  add('192.0.2.1')
  add('192.0.2.1')
  expect(closed).toEqual(['2001:db8:1:0::1'])
  add('2001:db8:1:ff::1')
  expect(closed[1]).toBe('2001:db8:1:ff::1')
})

test('a tenant does not hold all places: their networks are known up to a number, each with few connections', () => {
  const { add, closed } = crowded(60)
  // one /64 with many, and many addresses with one each
  admitNetwork(networkOf('2001:db8:9:9::1'), 'acct_mallory')
  for (let number = 0; number < 20; number += 1) add('2001:db8:9:9::1')
  for (let number = 0; number < 40; number += 1) {
    admitNetwork(`198.51.100.${number}`, 'acct_mallory')
    add(`198.51.100.${number}`)
  }
  add('192.0.2.1')
  expect(closed).toEqual(['2001:db8:9:9::1'])
  admitNetwork('192.0.2.1', 'acct_ada')
  for (let number = 0; number < 14; number += 1) add('192.0.2.1')
  expect(closed).toEqual(Array.from({ length: 15 }, () => '2001:db8:9:9::1'))
  // the rest of that network goes too, and then those of eight addresses that were known first, as strangers' do
  for (let number = 0; number < 13; number += 1) {
    admitNetwork(`192.0.2.${2 + number}`, 'acct_ada')
    add(`192.0.2.${2 + number}`)
  }
  expect(closed.slice(20)).toEqual(Array.from({ length: 8 }, (_, number) => `198.51.100.${number}`))
})

test('strangers give way to who called with a key, and do not take their place', async () => {
  box = await openToybox({ max_connections: 4, max_connections_per_address: 100, uncounted: [] })
  // whose network is known from then on
  expect((await box.call('GET', '/v1/toys')).status).toBe(200)
  const known = await Promise.all([hold(box.port), hold(box.port)])
  const [strange] = await Promise.all([hold(box.port, '127.0.0.2'), hold(box.port, '127.0.0.3')])
  expect(await answerOn(await hold(box.port, '127.0.0.4'))).toBe('')
  const closed = new Promise((resolve) => strange.once('close', resolve))
  expect(await exchange(box.port, asked)).toContain('200 OK')
  await closed
  expect(await answerOn(known[0])).toContain('200 OK')
})

test('strangers do not take the places of a proxy, whatever it has', async () => {
  box = await openToybox({ max_connections: 4, max_connections_per_address: 100, uncounted: ['127.0.0.9'] })
  const proxied = await Promise.all(['127.0.0.9', '127.0.0.9', '127.0.0.9'].map((from) => hold(box.port, from)))
  await hold(box.port, '127.0.0.2')
  expect(await answerOn(await hold(box.port, '127.0.0.3'))).toBe('')
  expect(await answerOn(proxied[0]!)).toContain('200 OK')
})

test('the ports of the box are counted together, before TLS', async () => {
  const pair = await generate([{ name: 'commonName', value: 'box.test' }], { keySize: 2048 })
  box = await openToybox({
    max_connections_per_address: 2,
    uncounted: [],
    tls: { certificate: () => ({ cert: pair.cert, key: pair.private }), listen: { host: '127.0.0.1', port: 0 } },
  })
  const port = box.server.addresses.tls!.port
  for (let count = 0; count < 2; count++) await hold(box.port)
  const secure = connectSecurely({ port, host: '127.0.0.1', rejectUnauthorized: false })
  held.push(secure.on('error', () => undefined))
  let shaken = false
  secure.once('secureConnect', () => (shaken = true))
  await new Promise((resolve) => secure.once('close', resolve))
  expect(shaken).toBe(false)
  for (const socket of held) socket.destroy()
  await expect.poll(() => exchange(box.port, asked)).toContain('200 OK')
})

test('a trusted proxy, which speaks for many, is not counted; the number can be changed while it runs', async () => {
  const settings = {
    listen: { host: '127.0.0.1', port: 0 },
    public_url: 'http://box.test',
    trusted_proxies: ['127.0.0.9'],
    proxy_protocol: [],
    cors_origins: [],
    public_rate_limit: 60,
    document_rate_limit: 600,
    account_rate_limit: 0,
    sign_in_rate_limit: 5,
    session_same_site: 'strict' as const,
    max_connections: 100,
    max_connections_per_address: 1,
    uncounted: ['127.0.0.9'],
  }
  box = await openToybox(settings)
  for (let count = 0; count < 5; count++) await hold(box.port, '127.0.0.9')
  expect(await answerOn(await hold(box.port, '127.0.0.9'))).toContain('200 OK')
  await hold(box.port)
  expect(await exchange(box.port, asked)).toBe('')
  await box.server.reload({ ...settings, max_connections_per_address: 2 })
  expect(await exchange(box.port, asked)).toContain('200 OK')
})
