import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectSecurely } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import { Listener } from '../../src/http/server/listener.ts'
import { folder } from '../support/folder.ts'

// no connection ends by itself while a test lasts
const hour = 3_600_000

/** A connection to an HTTPS port that answers `ok`; the client has not begun its handshake. */
async function opened(): Promise<{ listener: Listener; failed: () => number; socket: Socket }> {
  const pair = await certificate(folder(), 'box.test')
  let failed = 0
  const listener = new Listener(
    (request, response) => response.end(`ok ${request.socket.remoteAddress}`),
    () => ({ body: '{"error":{}}', requestId: 'req_1' }),
    { tls: { certificate: () => pair }, tlsFailed: () => (failed += 1), timeout: { headers: hour, keepAlive: hour, idle: hour } },
  )
  const { port } = await listener.start({ host: '127.0.0.1', port: 0 }, 10)
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  onTestFinished(async () => {
    socket.destroy()
    listener.cut()
    await listener.close()
  })
  return { listener, failed: () => failed, socket }
}

test('a caller by TLS has the address of its connection', async () => {
  const { socket } = await opened()
  const secure = connectSecurely({ socket, rejectUnauthorized: false })
  secure.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  expect((await buffer(secure)).toString()).toMatch(/ok (?:::ffff:)?127\.0\.0\.1$/)
})

test('a port that closes ends the connections whose handshake is not complete', async () => {
  const { listener, socket, failed } = await opened()
  const closed = once(socket.resume(), 'close')
  // the connection was accepted
  await expect.poll(() => listener.connections).toBe(1)
  await listener.close()
  await closed
  expect(failed()).toBe(1)
})

test('what is no TLS ends a connection, before its handshake and after', async () => {
  const { socket, failed } = await opened()
  const closed = once(socket.resume(), 'close')
  socket.write('GET / HTTP/1.1\r\n\r\n')
  await closed
  expect(failed()).toBe(1)

  const { socket: other } = await opened()
  const secure = connectSecurely({ socket: other, rejectUnauthorized: false })
  secure.on('error', () => undefined)
  await once(secure, 'secureConnect')
  // the end of the handshake leaves first
  await sleep(50)
  const ended = once(other, 'close')
  other.write(Buffer.from([23, 3, 3, 0, 32, ...Buffer.alloc(32, 7)]))
  await ended
})
