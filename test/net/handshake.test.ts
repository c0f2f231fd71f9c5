import { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type LimitedHandshake, limitHandshake } from '../../src/net/handshake.ts'

/** A connection to a server in a network, and what its TLS client got to read. */
async function connection(remoteAddress: string): Promise<{ sends: (octets: Buffer) => void; got: Buffer[] } & LimitedHandshake> {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  const limited = limitHandshake(Object.assign(socket, { remoteAddress }))
  const got: Buffer[] = []
  limited.stream.on('data', (chunk: Buffer) => got.push(chunk))
  limited.stream.on('error', () => undefined)
  await turn()
  return { sends: (octets) => void socket.emit('data', octets), got, ...limited }
}

/** Takes so many milliseconds of this thread, of which the kernel has a part. */
function compute(milliseconds: number): void {
  const before = process.threadCpuUsage()
  for (let took = 0; took < milliseconds * 1000;) {
    const { user, system } = process.threadCpuUsage(before)
    took = user + system
  }
}

test('what servers send in their handshakes at one moment is read one by one, what is large last', async () => {
  const order: string[] = []
  const servers = [
    { name: 'first', address: '192.0.2.1', size: 100 },
    { name: 'large', address: '192.0.2.2', size: 15_000 },
    { name: 'larger', address: '192.0.2.3', size: 16_000 },
    { name: 'ordinary', address: '192.0.2.4', size: 4000 },
  ]
  const open = await Promise.all(servers.map(({ address }) => connection(address)))
  for (const [index, { stream }] of open.entries()) stream.on('data', () => order.push(servers[index]!.name))
  for (const [index, { sends }] of open.entries()) sends(Buffer.alloc(servers[index]!.size))
  // others have their turn before the second
  expect(order).toEqual(['first'])
  await vi.waitFor(() => expect(order).toHaveLength(4), 100_000)
  expect(order).toEqual(['first', 'ordinary', 'large', 'larger'])
})

test('a network whose handshakes took long comes after one whose handshakes did not, whatever they send now', async () => {
  const order: string[] = []
  const slow = await connection('198.51.100.1')
  const others = [await connection('198.51.100.1'), await connection('198.51.100.2')]
  slow.stream.once('data', () => {
    compute(100)
    // both wait before the turn is over
    for (const [index, { stream, sends }] of others.entries()) {
      stream.on('data', () => order.push(['slow', 'other'][index]!))
      sends(Buffer.alloc(index === 0 ? 10 : 1000))
    }
  })
  slow.sends(Buffer.alloc(10))
  await vi.waitFor(() => expect(order).toHaveLength(2), 100_000)
  expect(order).toEqual(['other', 'slow'])
})

test('a network whose handshake takes more than half a second is refused for minutes, others are not', async () => {
  const slow = await connection('203.0.113.1')
  slow.stream.once('data', () => {
    compute(600)
  })
  slow.sends(Buffer.alloc(10))
  // those of the test before may still take their turn
  await vi.waitFor(() => expect(slow.got).toHaveLength(1), 100_000)
  const again = await connection('203.0.113.1')
  const other = await connection('192.0.2.1')
  const refused = new Promise((resolve) => again.stream.once('error', resolve))
  again.sends(Buffer.alloc(10))
  other.sends(Buffer.alloc(10))
  expect(await refused).toMatchObject({ message: expect.stringContaining('take too long to verify') })
  expect(again.got).toEqual([])
  await vi.waitFor(() => expect(other.got).toHaveLength(1), 100_000)
})

test('what comes while a connection waits for its turn is read in order, and all of it when the handshake is over', async () => {
  const first = await connection('192.0.2.1')
  const second = await connection('192.0.2.1')
  first.sends(Buffer.from('x'))
  for (const text of ['one ', 'two ', 'three']) second.sends(Buffer.from(text))
  expect(second.got).toEqual([])
  second.complete({ bytesRead: 0 })
  expect(Buffer.concat(second.got).toString()).toBe('one two three')
})

test('after the handshake a server may send text, and no more than 64 KiB that is none', async () => {
  const client = { bytesRead: 0 }
  const { sends, stream, complete } = await connection('192.0.2.1')
  complete(client)
  for (let count = 0; count < 100; count += 1) {
    sends(Buffer.alloc(16_384))
    client.bytesRead += 16_000
  }
  expect(stream.destroyed).toBe(false)
  const { bytesRead } = client
  const failed = new Promise((resolve) => stream.once('error', resolve))
  // of the text so far, as many bytes again four times over
  for (let sent = 0; sent < 4 * bytesRead; sent += 16_384) sends(Buffer.alloc(16_384))
  expect(await failed).toMatchObject({ message: 'it sends TLS records without text' })
})

test('handshakes that were refused do not count in what those with their network take', async () => {
  const order: string[] = []
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const slow = await connection('203.0.113.2')
  slow.stream.once('data', () => {
    compute(600)
  })
  slow.sends(Buffer.alloc(10))
  for (let count = 0; count < 20; count += 1) {
    const refused = await connection('203.0.113.2')
    refused.sends(Buffer.alloc(10))
    await vi.waitFor(() => expect(refused.stream.destroyed).toBe(true), 100_000)
  }
  vi.advanceTimersByTime(200_000)
  const first = await connection('192.0.2.11')
  const others = [await connection('203.0.113.2'), await connection('192.0.2.12')]
  first.sends(Buffer.alloc(10))
  for (const [index, { stream, sends }] of others.entries()) {
    stream.on('data', () => order.push(['slow', 'other'][index]!))
    sends(Buffer.alloc(index === 0 ? 10 : 15_000))
  }
  await vi.waitFor(() => expect(order).toHaveLength(2), 100_000)
  expect(order).toEqual(['other', 'slow'])
})
