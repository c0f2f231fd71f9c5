import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Outside } from '../../src/delivery/outside.ts'
import { certificate } from '../../src/mail/certificate.ts'
import { folder } from '../support/folder.ts'
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

test('who hangs, or drips, is given up at the deadline, and the reason says so', async () => {
  const { sink, post } = await near()
  for (const behaviour of [hangs, drips]) {
    sink.behaviour = behaviour
    await expect(post(sink.url, hello(200))).rejects.toThrow('no whole answer within 0.2 s')
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
