import { once } from 'node:events'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { ConnectionLimiter, type ConnectionLimits } from '../../src/net/connection-limiter.ts'
import { Networks } from '../../src/net/networks.ts'

/** A limiter, and what it says to connections from these addresses; the sockets of those that it admitted. */
function limited(limits: ConnectionLimits) {
  const limiter = new ConnectionLimiter(() => limits)
  const answers = (addresses: string[]): { answer: string; socket: Socket }[] =>
    addresses.map((remoteAddress) => {
      const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress })
      return { answer: limiter.admit(socket), socket }
    })
  return { limiter, answers, admitted: (from: string[]) => answers(from).filter(({ answer }) => answer === 'admitted') }
}

async function close({ socket }: { socket: Socket }): Promise<void> {
  socket.destroy()
  await once(socket, 'close')
}

test('one /64 cannot take the places of another, nor all together more than there are', async () => {
  const { limiter, answers } = limited({ max_connections: 5, max_connections_per_address: 2 })
  const first = answers(['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:0:1::1'])
  expect(first.map(({ answer }) => answer)).toEqual(['admitted', 'admitted', 'network_full', 'admitted'])
  await close(first[0]!)
  expect(answers(['2001:db8::3'])).toMatchObject([{ answer: 'admitted' }])
  const last = answers(['192.0.2.1', '192.0.2.2', '192.0.2.3'])
  expect(last.map(({ answer }) => answer)).toEqual(['admitted', 'admitted', 'server_full'])
  expect(limiter.open).toBe(5)
})

/** A hundred addresses that differ in a number, spelt in hexadecimal. */
const many = (spelt: (n: string) => string): string[] => Array.from({ length: 100 }, (_, n) => spelt(n.toString(16)))

test('who has many /64s has not many connections: a /56 has four times those of one, a /48 sixteen times', async () => {
  const { limiter, admitted } = limited({ max_connections: Infinity, max_connections_per_address: 2 })
  const [first, ...others] = admitted(many((n) => `2001:db8:1:${n}::1`))
  expect(others).toHaveLength(7)
  expect(admitted(many((n) => `2001:db8:2:${n}00::1`))).toHaveLength(32)
  expect(admitted(many((n) => `::ffff:192.0.2.${Number.parseInt(n, 16)}`))).toHaveLength(100)
  expect(limiter.open).toBe(140)
  await close(first!)
  expect(admitted(['2001:db8:1:ff::1', '2001:db8:1:fe::1'])).toHaveLength(1)
})

test('proxies, which speak for many, are not counted', () => {
  const uncounted = new Networks(['192.0.2.0/24'])
  const { limiter, admitted } = limited({ max_connections: 2, max_connections_per_address: 1, uncounted })
  expect(admitted(Array.from({ length: 5 }, () => '192.0.2.9'))).toHaveLength(5)
  expect(limiter.open).toBe(0)
})
