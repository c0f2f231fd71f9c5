import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createServer, type ServerResponse } from 'node:http'
import { Listener } from '../../src/http/server/listener.ts'
import { errorOf, exchange, openToybox, type Toybox, toyId } from './toy-box.ts'

let box: Toybox

beforeAll(async () => {
  box = await openToybox({ public_rate_limit: 100_000 })
})

afterAll(async () => {
  await box.server.stop()
})

const get = (path: string, lines: string[] = []) =>
  box.raw([`GET ${path} HTTP/1.1`, 'Authorization: Bearer free', 'Connection: close', ...lines, '', ''].join('\r\n'))

describe('a request that could mean two things is refused', () => {
  test.each([
    ['two Host headers', ['Host: a', 'Host: b']],
    ['no Host header', []],
    ['a Host with a user part', ['Host: evil.test:x@good']],
    ['two keys', ['Host: a', 'Authorization: Bearer all']],
    ['two lengths', ['Host: a', 'Content-Length: 0', 'Content-Length: 5']],
    ['a length and chunks', ['Host: a', 'Content-Length: 5', 'Transfer-Encoding: chunked']],
    ['chunks of another coding', ['Host: a', 'Transfer-Encoding: gzip, chunked', '', '0']],
    ['chunks of no coding', ['Host: a', 'Transfer-Encoding: ,chunked', '', '0']],
    ['chunks twice', ['Host: a', 'Transfer-Encoding: identity', 'Transfer-Encoding: chunked', '', '0']],
    ['a header folded over two lines', ['Host: a', 'Transfer-Encoding:', ' chunked']],
    ['a header with NUL', ['Host: a', 'X-A: b\0c']],
    ['a header of 64 KiB', ['Host: a', `X-A: ${'b'.repeat(65_536)}`]],
  ])('%s', async (_, lines) => {
    const answer = await get('/v1/toys', lines)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    const { error } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')).replace(/^[^{]*/, '')) as {
      error: Record<string, unknown>
    }
    expect(error).toMatchObject({ type: 'invalid_request', status: 400 })
    expect(answer).toContain(`X-Request-Id: ${String(error.request_id)}`)
    expect(answer).not.toMatch(/HPE_|Error:| at /)
  })
})

test('a version of HTTP that is not spoken is refused', async () => {
  const answer = await box.raw('GET /v1/toys HTTP/2.0\r\nHost: a\r\nAuthorization: Bearer free\r\nConnection: close\r\n\r\n')
  expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*malformed_request/)
})

// Node reads the whole preface of HTTP/2 (RFC 9113 3.4) before it refuses it
test.each(['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'PRI /x HTTP/1.1\r\nHost: a\r\n\r\n'])('%j is refused', async (text) => {
  expect(await box.raw(text)).toMatch(/^HTTP\/1\.1 400 [^]*malformed_request/)
})

test('a request of HTTP/1.0 has no Transfer-Encoding, of which a proxy of that version knows nothing', async () => {
  const head = 'POST /v1/toys HTTP/1.0\r\nHost: a\r\nAuthorization: Bearer free\r\nConnection: keep-alive\r\n'
  const second = 'GET /v1/toys HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer free\r\nConnection: close\r\n\r\n'
  const answer = await box.raw(
    `${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n${second}`,
  )
  expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*malformed_request/)
  expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1)
})

test('a second request hidden in the body of the first is never run', async () => {
  const hidden = `DELETE /v1/toys/${toyId} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free\r\n\r\n`
  const head = 'POST /v1/toys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free\r\nContent-Type: application/json\r\n'
  for (const attack of [
    `${head}Content-Length: ${5 + hidden.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    `${head}Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
    `${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hidden}`,
    `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${hidden}`,
    `${head}Content-Length : 0\r\n\r\n${hidden}`,
    `${head}Content-Length: +0\r\n\r\n${hidden}`,
    `${head}Transfer-Encoding: chunked\r\n\r\n0\n\n${hidden}`,
  ]) {
    expect(await box.raw(attack)).not.toContain('"deleted":true')
  }
})

test.each([
  ['/v1/toys/%E0%A4%A', 400],
  ['/v1/toys/%', 400],
  ['/v1/toys/%00', 404],
  ['/v1/toys/a%2fb', 404],
  ['/v1/toys/..%2f..%2fetc', 404],
  ['/../../etc/passwd', 404],
  ['//evil.test/v1/toys', 404],
  ['http://evil.test/v1/toys', 400],
  ['/docs/..%2f..%2fpackage.json', 404],
  ['/docs/package.json', 404],
  [`/v1/${'a'.repeat(10_000)}`, 400],
  ['/v1/toys?limit=%E0%A4%A', 400],
])('%s is %i', async (path, status) => {
  expect(await get(path, ['Host: x'])).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
})

test.each([
  'x',
  'IDENT_01jd3v8m2ef1pbx9mz5k7q4w6a',
  'ident_01jd3v8m2ef1pbx9mz5k7q4w6',
  `ident_${'0'.repeat(60)}`,
  "ident_1' OR '1'='1",
])('the id %s has not the form of an id: 404', async (id) => {
  expect(await errorOf(await box.call('GET', `/v1/toys/${encodeURIComponent(id)}`))).toMatchObject({
    status: 404,
    type: 'not_found',
    param: 'id',
    code: 'bad_id',
  })
})

test.each(['ident_00000000000000000000000000', 'email_01jd3v8m2ef1pbx9mz5k7q4w6a'])(
  'the id %s may exist, but does not: 404',
  async (id) => {
    expect(await errorOf(await box.call('GET', `/v1/toys/${id}`))).toMatchObject({ status: 404, type: 'not_found' })
  },
)

test('what is no HTTP at all gets an answer in the shape of every error', async () => {
  for (const text of ['\x16\x03\x01\x02\x00', 'EHLO mail.test\r\n', 'GET / HTTP/9.9\r\n\r\n']) {
    expect(await box.raw(text)).toContain('"type":"invalid_request"')
  }
})

test.each([
  ['no HTTP', 'nonsense\r\n\r\n', ['400']],
  ['CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', ['400']],
  [
    'broken chunks',
    'POST /v1/toys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
    ['400'],
  ],
  // without a key it is refused before
  ['broken chunks of a stranger', 'POST /v1/toys HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n', ['401']],
])('requests before %s are answered first, in their order, and it has one answer', async (_, broken, refused) => {
  const good = 'GET /v1/toys?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free\r\n\r\n'
  const answer = await box.raw(`${good}${good}${broken}`)
  expect([...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '200', ...refused])
})

test('a request that asks to go on behind another that takes longer has a whole answer', async () => {
  box.played.held = new Promise((resolve) => (box.played.release = resolve))
  const held = '{"name":"held"}'
  const head = 'HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free\r\n'
  const first = `POST /v1/toys ${head}Content-Type: application/json\r\nContent-Length: ${held.length}\r\n\r\n${held}`
  const answering = box.raw(`${first}GET /v1/openapi.json ${head}Expect: 100-continue\r\nConnection: close\r\n\r\n`)
  // the second is answered by then
  await box.call('GET', '/v1/openapi.json')
  box.played.release!()
  const answer = await answering
  const last = answer.slice(answer.lastIndexOf('HTTP/1.1 200'))
  expect(JSON.parse(last.slice(last.indexOf('\r\n\r\n')))).toHaveProperty('openapi')
})

test('a request that was answered before its body arrived has no second answer when that is broken', async () => {
  const head = 'POST /v1/toys HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
  const answer = await new Promise<string>((resolve) => {
    let told = ''
    const socket = connect(box.port, '127.0.0.1', () => socket.write(head))
    socket.on('data', (chunk: Buffer) => {
      if (told === '') socket.write('xyz\r\n')
      told += chunk.toString()
    })
    socket.on('close', () => resolve(told))
  })
  expect([...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['401'])
})

test('what is no HTTP counts against the address it came from, and is told how that stands', async () => {
  const limited = await openToybox({ public_rate_limit: 3 })
  const left: string[] = []
  for (let turn = 0; turn < 3; turn++) {
    const answer = await limited.raw('EHLO mail.test\r\n')
    expect(answer).toContain('RateLimit-Policy: "address";q=3;w=60\r\n')
    left.push(/^RateLimit: "address";r=(\d+);/m.exec(answer)![1]!)
  }
  expect(left).toEqual(['2', '1', '0'])
  expect((await limited.call('POST', '/v1/open', { key: null })).status).toBe(429)
  await limited.server.stop()
})

test('a client that vanishes in the middle of its body harms nobody', async () => {
  for (let round = 0; round < 20; round++) {
    await new Promise<void>((resolve) => {
      const socket = connect(box.port, '127.0.0.1', () => {
        const head = 'POST /v1/toys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free\r\nContent-Type: application/json\r\n'
        socket.write(`${head}Content-Length: 1000\r\n\r\n{"name"`, () => {
          socket.resetAndDestroy()
          resolve()
        })
      })
    })
  }
  expect((await box.call('GET', '/v1/toys')).status).toBe(200)
})

const complain = () => ({ body: '{"error":{}}', requestId: 'req_1' })

test('headers that trickle in are cut off with an answer', async () => {
  const listener = new Listener((_, response) => response.end(), complain, { timeout: { headers: 100, request: 200 } })
  const { port } = await listener.start({ host: '127.0.0.1', port: 0 }, 10)
  expect(await exchange(port, 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow:')).toContain('HTTP/1.1 400 Bad Request')
  await listener.close()
})

const ask = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`

test('who sends on without reading the answers is cut off; who sends a few requests ahead is answered', async () => {
  const asked: ServerResponse[] = []
  const listener = new Listener((request, response) => {
    asked.push(response)
    if (request.url === '/few') response.end('ok')
  }, complain)
  const { port } = await listener.start({ host: '127.0.0.1', port: 0 }, 10)
  const answers = await exchange(port, `${ask('/few').repeat(7)}${ask('/few', 'Connection: close\r\n')}`)
  expect(answers.match(/^ok/gm)).toHaveLength(8)
  asked.length = 0
  expect(await exchange(port, ask('/many').repeat(20_000))).toBe('')
  expect(asked).toHaveLength(8)
  await listener.close()
})

test('connections over the limit are turned away', async () => {
  const listener = new Listener(
    (_, response) => response.end('ok'),
    () => ({ body: '', requestId: '' }),
  )
  const { port } = await listener.start({ host: '127.0.0.1', port: 0 }, 1)
  const first = connect(port, '127.0.0.1')
  await new Promise((resolve) => first.once('connect', resolve))
  expect(await exchange(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toBe('')
  first.destroy()
  await listener.close()
})

test('a port that is taken is said at start', async () => {
  const holder = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => holder.once('listening', resolve))
  const { port } = holder.address() as { port: number }
  await expect(openToybox({ listen: { host: '127.0.0.1', port } })).rejects.toThrow('EADDRINUSE')
  holder.close()
})
