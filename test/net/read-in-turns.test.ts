import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { readInTurns } from '../../src/net/read-in-turns.ts'
import { readingTurns } from '../../src/net/reading-turns.ts'

/** The server's side of a connection, which is read in turns. */
async function accepted(): Promise<Socket> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = (await once(server, 'connection')) as [Socket]
  onTestFinished(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  readInTurns(socket)
  return socket
}

test.each([
  { what: 'a short packet behind a longer one', sizes: [6000, 10] },
  { what: 'a longer packet behind a short one', sizes: [10, 6000] },
  { what: 'packets of all lengths', sizes: [10, 6000, 20_000, 10, 5000, 1, 4096, 4097, 30_000, 3] },
])('$what, and the end, come in their order while others are read', async ({ sizes }) => {
  const socket = await accepted()
  const packets = sizes.map((size) => randomBytes(size))
  const received = buffer(socket)
  // they arrive while another network has its turn
  readingTurns.enter('short', 'another', () => {
    for (const packet of packets) socket.push(Buffer.from(packet))
    socket.push(null)
  })
  expect((await received).equals(Buffer.concat(packets))).toBe(true)
})
