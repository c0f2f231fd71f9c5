import { expect, test } from 'vitest'
import { ConnectionLimiter, type ConnectionLimits } from '../../src/net/connection-limiter.ts'
import { Networks } from '../../src/net/networks.ts'

const admission: unknown = expect.any(Function)

/** A limiter, what it says to connections from these addresses, and the ends of those that it admits. */
function limited(limits: ConnectionLimits) {
  const limiter = new ConnectionLimiter(() => limits)
  const answers = (addresses: string[]) => addresses.map((address) => limiter.admit(address))
  const admitted = (addresses: string[]) => answers(addresses).filter((answer) => typeof answer === 'function')
  return { limiter, answers, admitted }
}

test('one /64 cannot take the places of another, nor all together more than there are', () => {
  const { limiter, answers, admitted } = limited({ max_connections: 5, max_connections_per_address: 2 })
  const [first] = admitted(['2001:db8::1'])
  expect(answers(['2001:db8::2', '2001:db8::3', '2001:db8:0:1::1'])).toEqual([admission, 'network_full', admission])
  first!()
  expect(answers(['2001:db8::3'])).toEqual([admission])
  expect(answers(['192.0.2.1', '192.0.2.2', '192.0.2.3'])).toEqual([admission, admission, 'server_full'])
  expect(limiter.open).toBe(5)
})

/** A hundred addresses that differ in a number, spelt in hexadecimal. */
const many = (spelt: (n: string) => string): string[] => Array.from({ length: 100 }, (_, n) => spelt(n.toString(16)))

test('who has many /64s has not many connections: a /56 has four times those of one, a /48 sixteen times', () => {
  const { limiter, admitted } = limited({ max_connections: Infinity, max_connections_per_address: 2 })
  const [first, ...others] = admitted(many((n) => `2001:db8:1:${n}::1`))
  expect(others).toHaveLength(7)
  expect(admitted(many((n) => `2001:db8:2:${n}00::1`))).toHaveLength(32)
  expect(admitted(many((n) => `::ffff:192.0.2.${Number.parseInt(n, 16)}`))).toHaveLength(100)
  expect(limiter.open).toBe(140)
  first!()
  expect(admitted(['2001:db8:1:ff::1', '2001:db8:1:fe::1'])).toHaveLength(1)
})

test('proxies, which speak for many, are not counted', () => {
  const uncounted = new Networks(['192.0.2.0/24'])
  const { limiter, admitted } = limited({ max_connections: 2, max_connections_per_address: 1, uncounted })
  expect(admitted(Array.from({ length: 5 }, () => '192.0.2.9'))).toHaveLength(5)
  expect(limiter.open).toBe(0)
})
