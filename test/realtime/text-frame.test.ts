import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { textFrame } from '../../src/realtime/text-frame.ts'

const long = 'ä'.repeat(40_000)

const messages: (string | Buffer)[][] = [
  [''],
  ['a'.repeat(125)],
  ['a'.repeat(126)],
  ['a'.repeat(4095)],
  ['{"data":', Buffer.from('"é"'), '}'],
  ['{"data":', Buffer.from(`"${'b'.repeat(5000)}"`), '}'],
  ['a'.repeat(65_535)],
  ['a'.repeat(65_536)],
  ['"', long, '"'],
]

test('a client reads each message as it was written, whatever its length and its parts', async () => {
  const server = createServer()
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (request, connection, head) => {
    sockets.handleUpgrade(request, connection, head, () => {
      for (const parts of messages) for (const buffer of textFrame(...parts)) connection.write(buffer)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  onTestFinished(() => {
    client.terminate()
    server.close()
  })
  const read: string[] = []
  client.on('message', (data: Buffer, binary) => read.push(binary ? 'binary' : data.toString()))
  await expect.poll(() => read.length).toBe(messages.length)
  expect(read).toEqual(messages.map((parts) => parts.map(String).join('')))
})

test('a long part is not copied, so that the sockets that share it have it in memory once', () => {
  const part = Buffer.alloc(10_000, 'x')
  expect(textFrame('"', part, '"')).toContain(part)
})
