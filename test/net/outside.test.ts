import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { join } from 'node:path'
import { Outside } from '../../src/net/outside.ts'
import { certificate } from '../../src/certificates/self-signed.ts'
import { folder } from '../support/folder.ts'
import { finiteField } from '../support/finite-field.ts'
import { drips, hangs, says, WebhookSink } from '../support/webhook-sink.ts'

const patient = 5000
const resolve = async (): Promise<string[]> => ['127.0.0.1']

async function near(): Promise<{ outside: Outside; sink: WebhookSink; post: typeof Outside.prototype.post }> {
  const sink = await WebhookSink.start()
  const outside = new Outside({ allow_http: false, allow_networks: ['127.0.0.0/8'], resolve })
  return { outside, sink, post: outside.post.bind(outside) }
}

const hello = (deadline = patient, signal = new AbortController().signal) => ({
  headers: { 'X-Test': 'yes' },
  body: Buffer.from('{"a":1}'),
  deadline,
  signal,
})

test('octets go out as they are, and the answer comes back with the beginning of its body', async () => {
  const { sink, post } = await near()
  sink.behaviour = says(202, { 'x-answer': 'here' }, 'ü'.repeat(2000))
  const answer = await post(`${sink.url}/path?query=1`, hello())
  expect(answer).toMatchObject({ status: 202, headers: { 'x-answer': 'here' } })
  expect(answer.body).toBe('ü'.repeat(512))
  expect(sink.received[0]).toMatchObject({ path: '/path?query=1', raw: '{"a":1}', headers: { 'x-test': 'yes' } })
})

test('connections are used again', async () => {
  const { sink, post } = await near()
  for (let count = 0; count < 20; count += 1) await post(sink.url, hello())
  expect(sink.connections).toBeLessThan(5)
})

test.each([[301], [302], [303], [307], [308]])('a redirect (%i) is an answer, not an order', async (status) => {
  const { sink, post } = await near()
  sink.behaviour = says(status, { location: `${sink.url}/elsewhere` })
  expect((await post(`${sink.url}/here`, hello())).status).toBe(status)
  expect(sink.received.map(({ path }) => path)).toEqual(['/here'])
})

test('a huge answer is read no further than needed, and nothing is unpacked', async () => {
  const { sink, post } = await near()
  let sent = 0
  sink.behaviour = (response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' })
    const more = (): void => {
      while (!response.destroyed && sent < 512 * 1024 * 1024) {
        sent += 65_536
        if (!response.write(Buffer.alloc(65_536, 'x'))) return void response.once('drain', more)
      }
    }
    more()
  }
  const answer = await post(sink.url, hello())
  expect(answer).toMatchObject({ status: 200, body: 'x'.repeat(1024) })
  expect(sent).toBeLessThan(64 * 1024 * 1024)
})

test.each([
  ['interim answers', '', 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'],
  ['a reason', 'HTTP/1.1 200 ', 'because '],
  ['headers', 'HTTP/1.1 200 OK\r\n', 'X-Again: and again\r\n'],
  ['chunk extensions', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;', 'again=and-again;'],
  ['trailers', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n', 'X-Again: and again\r\n'],
])('who never comes to an end with %s is cut off, long before the deadline', async (_what, beginning, part) => {
  const { post } = await near()
  let sent = 0
  const server = createTcpServer((socket) => {
    const more = (): void => {
      while (!socket.destroyed && sent < 512 * 1024 * 1024) {
        sent += 65_536
        if (!socket.write(part.repeat(Math.ceil(65_536 / part.length)))) return void socket.once('drain', more)
      }
    }
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.write(beginning)
      more()
    })
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await expect(post(`http://127.0.0.1:${port}/`, hello(60_000))).rejects.toThrow(/too large|Headers Overflow|interim/)
  expect(sent).toBeLessThan(64 * 1024 * 1024)
})

test('an answer after ten interim ones is taken, after a hundred it is not', async () => {
  const { post } = await near()
  const server = createTcpServer((socket) => {
    socket.once('data', (request: Buffer) => {
      const count = Number(/^POST \/(\d+)/.exec(request.toString())?.[1])
      socket.end(`${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(count)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`)
    })
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  expect(await post(`http://127.0.0.1:${port}/10`, hello())).toMatchObject({ status: 200, body: 'ok' })
  await expect(post(`http://127.0.0.1:${port}/100`, hello())).rejects.toThrow('more than 10 interim responses')
})

test('what a connection may carry is counted anew for each answer', async () => {
  const { sink, post } = await near()
  sink.behaviour = says(200, {}, 'x'.repeat(60_000))
  for (let count = 0; count < 30; count += 1) expect((await post(sink.url, hello())).status).toBe(200)
  expect(sink.connections).toBeLessThan(5)
})

test('no proxy is used, whatever the environment says', async () => {
  const { sink, post } = await near()
  const proxy = await WebhookSink.start()
  for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY']) vi.stubEnv(name, proxy.url)
  vi.stubEnv('NODE_USE_ENV_PROXY', '1')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { post: fresh } = await near()
  for (const through of [post, fresh]) expect((await through(sink.url, hello())).status).toBe(200)
  expect(sink.received).toHaveLength(2)
  expect(proxy.connections).toBe(0)
})

test('who hangs, or drips, is given up at the deadline, and the reason says so', async () => {
  const { sink, post } = await near()
  for (const behaviour of [hangs, drips]) {
    sink.behaviour = behaviour
    await expect(post(sink.url, hello(200))).rejects.toThrow('no complete response within 0.2 s')
  }
})

test('what is cut off from our side ends at once', async () => {
  const { sink, post } = await near()
  sink.behaviour = hangs
  const cut = new AbortController()
  const posting = post(sink.url, hello(60_000, cut.signal))
  await sink.until(1)
  cut.abort()
  await expect(posting).rejects.toThrow('aborted')
})

test('who is not there, or hangs up, is told apart', async () => {
  const { sink, post } = await near()
  sink.behaviour = (response) => response.socket?.destroy()
  await expect(post(sink.url, hello())).rejects.toThrow('the connection was cut off')
  const { url } = sink
  await sink.stop()
  await expect(post(url, hello())).rejects.toThrow('the connection was refused')
})

test('a certificate that nobody vouches for is no good, and nothing is said', async () => {
  const { post } = await near()
  const heard: unknown[] = []
  const server = createServer(await certificate(folder(), 'localhost'), (request, response) => {
    heard.push(request.url)
    response.end()
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await expect(post(`https://localhost:${port}/`, hello())).rejects.toThrow(/self-signed certificate/)
  expect(heard).toEqual([])
})

test('after a reload, connections to what is no longer allowed are not used', async () => {
  const { outside, sink, post } = await near()
  await post(sink.url, hello())
  outside.reload({ allow_http: true, allow_networks: [], resolve: async () => ['127.0.0.1'] })
  await expect(post(sink.url, hello())).rejects.toThrow('127.0.0.1 is not a public address')
  await expect(post(sink.url.replace('127.0.0.1', 'name.example.com'), hello())).rejects.toThrow('is not a public address')
  expect(sink.received).toHaveLength(1)
})

test('a server whose TLS is costly is not reached: a key exchange of a finite field, or a chain of a hundred certificates', async () => {
  const { key, cert } = await certificate(folder(), 'localhost')
  const field = await finiteField()
  const ca_file = join(folder(), 'ca.pem')
  writeFileSync(ca_file, `${cert}\n${field.cert}`)
  const outside = new Outside({ allow_http: false, allow_networks: ['127.0.0.0/8'], ca_file, resolve })
  const at = async (context: object): Promise<string> => {
    const server = createServer({ key, cert, ...context }, (_request, response) => response.end('there')).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    return `https://localhost:${(server.address() as AddressInfo).port}/`
  }
  expect(await outside.post(await at({}), hello())).toMatchObject({ status: 200, body: 'there' })
  await expect(outside.post(await at(field), hello())).rejects.toThrow(/handshake/i)
  await expect(outside.post(await at({ cert: `${cert}\n`.repeat(100) }), hello())).rejects.toThrow(
    'its TLS handshake has more than 16384 bytes',
  )
})

test('a server cannot send other certificates once its handshake is over', async () => {
  const pair = await certificate(folder(), 'localhost')
  const ca_file = join(folder(), 'ca.pem')
  writeFileSync(ca_file, pair.cert)
  const outside = new Outside({ allow_http: false, allow_networks: ['127.0.0.0/8'], ca_file, resolve })
  const { promise: again, resolve: settle } = Promise.withResolvers<Error | null>()
  const server = createServer({ ...pair, maxVersion: 'TLSv1.2' }, (_request, response) => response.end('there'))
  server.on('secureConnection', (socket: TLSSocket) => {
    socket.on('error', settle)
    socket.renegotiate({}, settle)
  })
  server.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await outside.post(`https://localhost:${port}/`, hello()).catch(() => undefined)
  expect(await again).toMatchObject({ code: 'ERR_SSL_NO_RENEGOTIATION' })
})

describe('an answer in chunks of an octet each', () => {
  test('is refused above some thousands of them, and taken below', async () => {
    const outside = new Outside({ allow_http: false, allow_networks: ['127.0.0.0/8'], resolve })
    const limits = { limit: 1_000_000, deadline: patient, signal: new AbortController().signal }
    const { body } = await outside.get(await flushed(10_000), limits)
    expect(body.toString()).toBe('a'.repeat(10_000))
    await expect(outside.get(await flushed(40_000), limits)).rejects.toMatchObject({
      message: 'its response consists of more than 16384 chunks of less than 512 bytes',
      tooLarge: true,
    })
  })

  test('is enough for a post, whose answer is not read to the end', async () => {
    const outside = new Outside({ allow_http: false, allow_networks: ['127.0.0.0/8'], resolve })
    expect(await outside.post(await flushed(40_000), hello())).toMatchObject({ status: 200, body: 'a'.repeat(1024) })
  })
})

/** Answers so many octets, and flushes each. */
async function flushed(octets: number): Promise<string> {
  const answer = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(octets)}0\r\n\r\n`
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(answer))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
