import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { type LimitedHandshake, limitHandshake } from '../../src/net/handshake.ts'

/** A connection to a server in a network, and what its TLS client got to read. */
async function connection(remoteAddress: string): Promise<{ sends: (octets: Buffer) => void; got: Buffer[] } & LimitedHandshake> {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  const limited = limitHandshake(Object.assign(socket, { remoteAddress }) as unknown as Socket)
  const got: Buffer[] = []
  limited.stream.on('data', (chunk: Buffer) => got.push(chunk))
  limited.stream.on('error', () => undefined)
  await turn()
  return { sends: (octets) => void socket.emit('data', octets), got, ...limited }
}

test('what servers send in their handshakes at one moment is read one by one, servers of each network in turn', async () => {
  const order: string[] = []
  const servers = [
    { name: 'a1', address: '192.0.2.1' },
    { name: 'a2', address: '192.0.2.1' },
    { name: 'a3', address: '192.0.2.1' },
    { name: 'b1', address: '192.0.2.2' },
  ]
  const open = await Promise.all(servers.map(({ address }) => connection(address)))
  for (const [index, { stream }] of open.entries()) stream.on('data', () => order.push(servers[index]!.name))
  for (const { sends } of open) sends(Buffer.from('certificates'))
  // others have their turn before the second
  expect(order).toEqual(['a1'])
  await vi.waitFor(() => expect(order).toHaveLength(4), 100_000)
  expect(order.indexOf('b1')).toBeLessThan(order.indexOf('a3'))
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
