import { expect, test } from 'vitest'
import { ConnectionLimiter } from '../../src/smtp/connection-limiter.ts'

test('one /64 cannot take the places of another', () => {
  const guard = new ConnectionLimiter()
  const limits = { max_connections: 5, max_connections_per_address: 2 }
  expect(['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:0:1::1'].map((address) => guard.admit(address, limits))).toEqual(
    ['admitted', 'admitted', 'network_full', 'admitted'],
  )
  guard.release('2001:db8::1')
  expect(guard.admit('2001:db8::3', limits)).toBe('admitted')
  expect(['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => guard.admit(address, limits))).toEqual([
    'admitted',
    'admitted',
    'server_full',
  ])
  expect(guard.open).toBe(5)
})

/** A hundred addresses that differ in a number, spelt in hexadecimal. */
const many = (spelt: (n: string) => string): string[] => Array.from({ length: 100 }, (_, n) => spelt(n.toString(16)))

test('who has many /64s has not many places: a /56 has four times those of one, a /48 sixteen times', () => {
  const guard = new ConnectionLimiter()
  const limits = { max_connections: 1000, max_connections_per_address: 2 }
  const welcome = (addresses: string[]): number =>
    addresses.filter((address) => guard.admit(address, limits) === 'admitted').length
  expect(welcome(many((n) => `2001:db8:1:${n}::1`))).toBe(8)
  expect(welcome(many((n) => `2001:db8:2:${n}00::1`))).toBe(32)
  expect(welcome(many((n) => `::ffff:192.0.2.${Number.parseInt(n, 16)}`))).toBe(100)
  expect(guard.open).toBe(140)
  guard.release('2001:db8:1:0::1')
  expect(welcome(['2001:db8:1:ff::1', '2001:db8:1:fe::1'])).toBe(1)
})
