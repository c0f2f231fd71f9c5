import { afterEach, expect, test } from 'vitest'
import { Buckets } from '../../src/http/rate.ts'
import { clientAddress } from '../../src/http/server/client-address.ts'
import { networkOf, Networks } from '../../src/net/networks.ts'
import { errorOf, openToybox, type Toybox } from './toy-box.ts'

let box: Toybox

afterEach(async () => {
  await box?.server.stop()
})

const heldClock = () => {
  const clock = { time: 1_000_000, now: () => clock.time }
  return clock
}

test('a key is limited by itself, told so on every answer, and let in again', async () => {
  const clock = heldClock()
  box = await openToybox({}, { clock })
  const first = await box.call('GET', '/v1/toys', { key: 'few' })
  expect(first.headers.get('ratelimit-policy')).toBe('"key";q=3;w=60')
  expect(first.headers.get('ratelimit')).toBe('"key";r=2;t=20')
  await box.call('GET', '/v1/nothing', { key: 'few' })
  await box.call('POST', '/v1/toys', { key: 'few', body: '{' })
  const refused = await box.call('GET', '/v1/toys', { key: 'few' })
  expect(refused.headers.get('retry-after')).toBe('20')
  expect(refused.headers.get('ratelimit')).toBe('"key";r=0;t=60')
  expect(await errorOf(refused)).toMatchObject({ type: 'rate_limited', status: 429 })
  expect((await box.call('GET', '/v1/toys')).status).toBe(200)
  clock.time += 20_000
  expect((await box.call('GET', '/v1/toys', { key: 'few' })).status).toBe(200)
})

test('calls without a valid key share the limit of their address; health does not count', async () => {
  box = await openToybox({ public_rate_limit: 4 }, { clock: heldClock() })
  expect((await box.call('GET', '/v1/toys', { key: null })).headers.get('ratelimit-policy')).toBe('"address";q=4;w=60')
  expect((await box.call('GET', '/v1/toys', { key: 'guess' })).status).toBe(401)
  expect(await box.raw('GET /v1/toys HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n')).toContain(
    'RateLimit: "address";r=1',
  )
  expect((await box.call('POST', '/v1/open', { key: null })).status).toBe(200)
  expect((await box.call('POST', '/v1/open', { key: null })).status).toBe(429)
  expect((await box.call('GET', '/v1/toys', { key: 'guess' })).status).toBe(429)
  const health = await box.call('GET', '/healthz', { key: null })
  expect(health.status).toBe(200)
  expect(health.headers.get('ratelimit')).toBeNull()
  const document = await box.call('GET', '/files/a', { key: null })
  expect(document.headers.get('ratelimit-policy')).toBe('"document";q=600;w=60')
  expect((await box.call('GET', '/v1/toys')).status).toBe(200)
})

test('a limit of 0 is none', async () => {
  box = await openToybox({ public_rate_limit: 0 })
  expect((await box.call('GET', '/v1/toys', { key: 'free' })).headers.get('ratelimit')).toBeNull()
})

test('X-Forwarded-For counts only when it comes from a trusted proxy', async () => {
  box = await openToybox({ trusted_proxies: ['127.0.0.0/8', '10.0.0.0/8'] })
  const from = async (header: string) => {
    const answer = await box.call('POST', '/v1/open', { key: null, headers: { 'X-Forwarded-For': header } })
    return ((await answer.json()) as { ip: string }).ip
  }
  expect(await from('203.0.113.7')).toBe('203.0.113.7')
  expect(await from('6.6.6.6, 203.0.113.7, 10.0.0.3')).toBe('203.0.113.7')
  expect(await from('6.6.6.6, nonsense')).toBe('127.0.0.1')
  await box.server.stop()
  box = await openToybox()
  expect(await from('203.0.113.7')).toBe('127.0.0.1')
})

test('addresses are read in every spelling a proxy uses', () => {
  const trusted = new Networks(['::1', '127.0.0.1', '2001:db8:1::/48'])
  expect(clientAddress('::ffff:127.0.0.1', '[2001:db8::7]:4711', trusted)).toBe('2001:db8::7')
  expect(clientAddress('::1', '203.0.113.7:99', trusted)).toBe('203.0.113.7')
  expect(clientAddress('2001:db8:1::9', '203.0.113.7', trusted)).toBe('203.0.113.7')
  expect(clientAddress('2001:db8:2::9', '203.0.113.7', trusted)).toBe('2001:db8:2::9')
  expect(clientAddress('127.0.0.1', undefined, trusted)).toBe('127.0.0.1')
  expect(clientAddress(undefined, '203.0.113.7', trusted)).toBe('')
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
])('an IPv6 address counts with its /64, an IPv4 address by itself: %s', (address, counted) => {
  expect(networkOf(address)).toBe(counted)
})

test('only so many callers are remembered, the newest', () => {
  const buckets = new Buckets('address', { now: () => 0 }, 2)
  buckets.take('a', 10)
  buckets.take('b', 10)
  buckets.take('a', 10)
  buckets.take('c', 10)
  expect(buckets.take('a', 10)?.remaining).toBe(7)
  expect(buckets.take('b', 10)?.remaining).toBe(9)
})

test('who has many networks is not many strangers: a /56 may do what four may, a /48 what sixteen may', async () => {
  box = await openToybox({ public_rate_limit: 2, trusted_proxies: ['127.0.0.0/8'] }, { clock: heldClock() })
  const admitted = async (addresses: string[]): Promise<number> => {
    let count = 0
    for (const address of addresses) {
      const { status } = await box.call('POST', '/v1/open', { key: null, headers: { 'X-Forwarded-For': address } })
      if (status === 200) count += 1
    }
    return count
  }
  expect(await admitted(within((n) => `2001:db8:1::${n}`))).toBe(2)
  expect(await admitted(within((n) => `2001:db8:2:${n.toString(16)}::1`))).toBe(8)
  expect(await admitted(within((n) => `2001:db8:3:${(n * 256).toString(16)}::1`))).toBe(32)
  expect(await admitted(within((n) => `2001:db8:${(n + 16).toString(16)}::1`))).toBe(40)
  expect(await admitted(within((n) => `192.0.2.${n}`))).toBe(40)
})

function within(place: (n: number) => string): string[] {
  return Array.from({ length: 40 }, (_, n) => place(n))
}
