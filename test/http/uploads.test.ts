import { createHash, randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import * as z from 'zod'
import { expect, onTestFinished, test, vi } from 'vitest'
import { invalid } from '../../src/core/fault.ts'
import { Listener } from '../../src/http/server/listener.ts'
import { routeOf } from '../../src/http/route.ts'
import { exchange, openToybox, type Toybox } from './toy-box.ts'

const route = routeOf('Toys')

const most = 32 * 1024 * 1024

const taking = route('POST', '/heap', {
  scope: 'messages:write',
  summary: 'Throw toys on a heap',
  upload: 'application/octet-stream',
  reply: z.object({ octets: z.int(), announced: z.int().nullable(), sha256: z.string() }),
  handle: async ({ upload }) => {
    const hash = createHash('sha256')
    let octets = 0
    for await (const chunk of upload.octets) {
      octets += chunk.length
      if (octets > most) throw invalid('body', 'The heap is full.', 'body_too_large')
      hash.update(chunk)
    }
    return { octets, announced: upload.length ?? null, sha256: hash.digest('hex') }
  },
})

const refusing = route('POST', '/full', {
  scope: 'messages:write',
  summary: 'Throw toys on a heap that is full',
  upload: 'application/octet-stream',
  reply: z.object({}),
  handle: async () => {
    throw invalid('body', 'The heap is full.', 'body_too_large')
  },
})

async function toybox(): Promise<Toybox> {
  const box = await openToybox({}, { routes: [taking, refusing] })
  onTestFinished(() => box.server.stop())
  return box
}

test('an upload is handed on as it comes, whatever its type and however large, and is not kept for repetitions', async () => {
  const box = await toybox()
  const octets = randomBytes(20 * 1024 * 1024)
  const sha256 = createHash('sha256').update(octets).digest('hex')
  const headers = { 'Content-Type': 'application/mbox', 'Idempotency-Key': 'one' }
  for (let turn = 0; turn < 2; turn += 1) {
    const answer = await box.call('POST', '/v1/heap', { body: octets, headers })
    expect(await answer.json()).toEqual({ octets: octets.length, announced: octets.length, sha256 })
  }
  const none = await box.call('POST', '/v1/heap')
  expect(await none.json()).toMatchObject({ octets: 0 })
})

test('nothing of an upload is read before its sender is admitted', async () => {
  const box = await toybox()
  const head = 'POST /v1/heap HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n'
  expect(await exchange(box.port, `${head}Connection: close\r\n\r\n`)).toContain('401 Unauthorized')
})

test('who sends more than is taken hears why, and is then hung up on', async () => {
  const box = await toybox()
  const socket = connect(box.port, '127.0.0.1')
  const heard: string[] = []
  socket.on('data', (chunk: Buffer) => void heard.push(chunk.toString()))
  socket.on('error', () => undefined)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(`POST /v1/heap HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\nContent-Length: 1000000000\r\n\r\n`)
  const chunk = Buffer.alloc(1024 * 1024)
  for (let count = 0; count < 1000 && !socket.destroyed && heard.length === 0; count += 1) {
    if (!socket.write(chunk)) await Promise.race([sleep(20), closed])
  }
  await closed
  expect(heard.join('')).toContain('body_too_large')
})

test('a connection whose upload was refused unread, and came to its end, goes on', async () => {
  const box = await toybox()
  const socket = connect(box.port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let heard = ''
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
  const heads = `Host: x\r\nAuthorization: Bearer all\r\nContent-Length: 10\r\n\r\n`
  socket.write(`POST /v1/full HTTP/1.1\r\n${heads}01234`)
  await vi.waitFor(() => expect(heard).toContain('body_too_large'), 100_000)
  socket.write('56789')
  // past the second that the rest is waited for
  await sleep(1500)
  socket.write(`POST /v1/heap HTTP/1.1\r\n${heads}0123456789`)
  await vi.waitFor(() => expect(heard).toContain('"octets":10'), 100_000)
})

test('a body must come in time, but an upload may take longer', async () => {
  const listener = new Listener(
    (request, response) => {
      if (request.url === '/upload') request.emit('upload')
      request.resume().once('end', () => response.end('all there'))
    },
    () => ({ body: '{"error":{}}', requestId: 'req_1' }),
    { timeout: { headers: 200, request: 200 } },
  )
  const { port } = await listener.start({ host: '127.0.0.1', port: 0 }, 10)
  onTestFinished(() => listener.close())
  const slowly = (path: string): Promise<string> =>
    new Promise((resolve) => {
      let told = ''
      const trickle = async (): Promise<void> => {
        socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n`)
        for (let count = 0; count < 10 && !socket.destroyed; count += 1) {
          await sleep(60)
          socket.write('x')
        }
      }
      const socket = connect(port, '127.0.0.1', () => void trickle())
      socket.on('data', (chunk: Buffer) => (told += chunk.toString()))
      socket.on('error', () => undefined)
      socket.on('close', () => resolve(told))
    })
  const [refused, taken] = await Promise.all([slowly('/other'), slowly('/upload')])
  expect(refused).toContain('400 Bad Request')
  expect(taken).toContain('all there')
})
