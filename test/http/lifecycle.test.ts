import { afterEach, describe, expect, test } from 'vitest'
import { generate } from 'selfsigned'
import { once } from 'node:events'
import { Agent, get } from 'node:https'
import { connect } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { connect as secure } from 'node:tls'
import { Metrics } from '../../src/core/metrics.ts'
import { errorOf, openToybox, type Toybox, toyId } from './toy-box.ts'

let box: Toybox

afterEach(async () => {
  await box?.server.stop()
})

test('stopping ends a wait at once with an answer, and takes no more calls', async () => {
  box = await openToybox()
  const waiting = new Promise<void>((resolve) => (box.played.release = resolve))
  const wait = box.call('GET', `/v1/toys/${toyId}/wait`)
  await waiting
  const stopped = box.server.stop()
  const answer = await wait
  expect(answer.headers.get('retry-after')).toBe('2')
  expect(await errorOf(answer)).toMatchObject({ type: 'internal_error', code: 'restarting' })
  await stopped
  // which is no error of the box
  const lines = box.lines.filter((line) => line.includes(answer.headers.get('x-request-id')!)).map((line) => JSON.parse(line))
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    ['info', 'request was ended by the stop of the box'],
    ['info', 'request'],
  ])
  await expect(box.call('GET', '/healthz')).rejects.toThrow('fetch failed')
})

test('stopping lets a call in hand finish', async () => {
  box = await openToybox()
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const begun = new Promise<void>((resolve) => {
    Object.defineProperty(box.played, 'held', {
      get: () => {
        resolve()
        return held
      },
    })
  })
  const call = box.call('POST', '/v1/toys', { body: { name: 'held' } })
  await begun
  const stopped = box.server.stop()
  release()
  expect((await call).status).toBe(201)
  await stopped
})

test('a client that goes away is told to the handler', async () => {
  box = await openToybox()
  const waiting = new Promise<void>((resolve) => (box.played.release = resolve))
  const leave = new AbortController()
  const call = fetch(`${box.base}/v1/toys/${toyId}/wait`, { headers: { Authorization: 'Bearer all' }, signal: leave.signal })
  await waiting
  leave.abort()
  await expect(call).rejects.toThrow('aborted')
  await expect.poll(() => box.played.aborted).toHaveLength(1)
  await expect.poll(() => box.lines.join('')).toContain('"status":499')
  expect(box.lines.join('')).not.toContain('"level":"error"')
})

test('limits and origins can be changed while it runs', async () => {
  const settings = {
    listen: { host: '127.0.0.1', port: 0 },
    public_url: 'http://box.test',
    trusted_proxies: [],
    proxy_protocol: [],
    cors_origins: [],
    public_rate_limit: 60,
    document_rate_limit: 600,
    account_rate_limit: 0,
    sign_in_rate_limit: 5,
    session_same_site: 'strict' as const,
    max_connections: 100,
    max_connections_per_address: 100,
    uncounted: [],
  }
  box = await openToybox(settings)
  await box.server.reload({
    ...settings,
    public_rate_limit: 7,
    public_url: 'https://box.test',
    cors_origins: ['https://app.test'],
  })
  const response = await box.call('POST', '/v1/open', { key: null, headers: { Origin: 'https://app.test' } })
  expect(response.headers.get('ratelimit-policy')).toBe('"address";q=7;w=60')
  expect(response.headers.get('strict-transport-security')).toContain('max-age')
  expect(response.headers.get('access-control-allow-origin')).toBe('https://app.test')
})

const certify = async (name: string) => {
  const pair = await generate([{ name: 'commonName', value: name }], { keySize: 2048 })
  return { certificate: () => ({ cert: pair.cert, key: pair.private }), listen: { host: '127.0.0.1', port: 0 } }
}

test('TLS is served, and a new certificate is taken without a restart', async () => {
  const settings = { listen: undefined, tls: await certify('old.test'), metrics: { listen: { host: '127.0.0.1', port: 0 } } }
  box = await openToybox(settings)
  const port = box.server.addresses.tls!.port
  const subject = () =>
    new Promise<string>((resolve, reject) => {
      const agent = new Agent({ rejectUnauthorized: false, keepAlive: false })
      const request = get({ host: '127.0.0.1', port, path: '/healthz', agent }, (response) => {
        const { socket } = response as unknown as { socket: { getPeerCertificate(): { subject: { CN: string } } } }
        const { CN } = socket.getPeerCertificate().subject
        response.resume().once('end', () => resolve(CN))
      })
      request.once('error', reject)
    })
  expect(await subject()).toBe('old.test')
  await box.server.reload({
    tls: await certify('new.test'),
    public_url: 'https://box.test',
    trusted_proxies: [],
    proxy_protocol: [],
    cors_origins: [],
    public_rate_limit: 60,
    document_rate_limit: 600,
    account_rate_limit: 0,
    sign_in_rate_limit: 5,
    session_same_site: 'strict' as const,
    max_connections: 100,
    max_connections_per_address: 100,
    uncounted: [],
  })
  expect(await subject()).toBe('new.test')
  // a client that does not speak TLS is counted
  const rude = connect(port, '127.0.0.1')
  rude.on('error', () => undefined).end('GET / HTTP/1.1\r\n\r\n')
  await once(rude.resume(), 'close')
  const told = await fetch(`http://127.0.0.1:${box.server.addresses.metrics!.port}/metrics`)
  expect(await told.text()).toContain('http_tls_failures_total 1\n')
})

test('a stop answers those whose TLS handshake has begun: a load balancer that is connected goes nowhere else', async () => {
  const settings = { listen: undefined, tls: await certify('box.test') }
  box = await openToybox(settings)
  const socket = connect(box.server.addresses.tls!.port, '127.0.0.1')
  await once(socket, 'connect')
  const stopped = box.server.stop()
  const secured = secure({ socket, rejectUnauthorized: false })
  secured.write('GET /healthz HTTP/1.1\r\nHost: box.test\r\n\r\n')
  const answer = await textOf(secured)
  expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/)
  expect(answer).toMatch(/^connection: close\r$/im)
  await stopped
})

test('while there is no room, what would store more is refused, and reading goes on', async () => {
  let room = false
  box = await openToybox({}, { hasSpace: () => room })
  const refused = await box.call('POST', '/v1/toys', { body: { name: 'Bear' }, headers: { 'Idempotency-Key': 'one' } })
  expect(refused.headers.get('retry-after')).toBe('60')
  expect(await errorOf(refused)).toMatchObject({ type: 'internal_error', status: 500, code: 'storage_full' })
  expect((await box.call('GET', '/v1/toys')).status).toBe(200)
  expect((await box.call('DELETE', `/v1/toys/${toyId}`)).status).toBe(200)
  room = true
  expect((await box.call('POST', '/v1/toys', { body: { name: 'Bear' }, headers: { 'Idempotency-Key': 'one' } })).status).toBe(201)
})

describe('health', () => {
  test('healthz says the process is up, readyz what is not ready', async () => {
    const failing: string[] = []
    box = await openToybox({}, { ready: async () => failing })
    expect(await (await box.call('GET', '/healthz', { key: null })).json()).toEqual({ status: 'ok' })
    expect(await (await box.call('GET', '/readyz', { key: null })).json()).toEqual({ status: 'ok' })
    failing.push('store')
    const response = await box.call('GET', '/readyz', { key: null })
    expect(response.status).toBe(503)
    expect(await response.json()).toEqual({ status: 'unavailable', failing: ['store'] })
    expect((await box.call('POST', '/healthz')).status).toBe(404)
    // what is asked every other second is logged only when the answer is worth it
    const logged = box.lines.map((line) => JSON.parse(line)).filter(({ msg, level }) => msg === 'request' && level === 'info')
    expect(logged.map(({ route, status }) => `${route} ${status}`)).toEqual(['/readyz 503', 'unknown 404'])
  })

  test('a check that fails itself is not ready', async () => {
    box = await openToybox({}, { ready: async () => Promise.reject(new Error('disk')) })
    expect((await box.call('GET', '/readyz')).status).toBe(503)
  })
})

describe('metrics', () => {
  test('are nowhere unless asked for', async () => {
    box = await openToybox()
    expect((await box.call('GET', '/metrics', { key: null })).status).toBe(404)
  })

  test('can be behind a token, and name routes by template only', async () => {
    box = await openToybox({ metrics: { token: 'watch' } })
    await box.call('GET', `/v1/toys/${toyId}`)
    await box.call('GET', '/v1/secret-path')
    expect((await box.call('GET', '/metrics', { key: 'wrong' })).status).toBe(404)
    const text = await (await box.call('GET', '/metrics', { key: 'watch' })).text()
    expect(text).toContain('http_requests_total{route="/v1/toys/:id",method="GET",status="200"} 1')
    expect(text).toContain('http_requests_total{route="unknown",method="GET",status="404"} 2')
    expect(text).toContain('http_request_duration_seconds_count{route="/v1/toys/:id",method="GET"} 1')
    expect(text).not.toContain('secret-path')
  })

  test('can have a listener of their own', async () => {
    const metrics = new Metrics()
    metrics.gauge('queue_depth', 'Deliveries due', (gauge) => gauge.set(7))
    metrics.collectProcess()
    box = await openToybox({ metrics: { listen: { host: '127.0.0.1', port: 0 } } }, { metrics })
    const base = `http://127.0.0.1:${box.server.addresses.metrics!.port}`
    const text = await (await fetch(`${base}/metrics`)).text()
    expect(text).toContain('queue_depth 7')
    expect(text).toContain('process_cpu_seconds_total')
    expect((await fetch(`${base}/v1/toys`)).status).toBe(404)
    expect((await box.call('GET', '/metrics', { key: null })).status).toBe(404)
  })
})

describe('pages of other origins', () => {
  test.each([
    'https://good.test.evil',
    'https://evil.good.test',
    'http://good.test',
    'https://good.test:444',
    'https://GOOD.test',
    'null',
    '*',
  ])('%s may read nothing', async (origin) => {
    box = await openToybox({ cors_origins: ['https://good.test'] })
    const headers = { Origin: origin, 'Access-Control-Request-Method': 'POST' }
    const preflight = await box.call('OPTIONS', '/v1/toys', { key: null, headers })
    const call = await box.call('GET', '/v1/toys', { headers })
    expect(preflight.status).toBe(404)
    for (const response of [preflight, call]) {
      expect(response.headers.get('access-control-allow-origin')).toBeNull()
      expect(response.headers.get('vary')).toContain('Origin')
    }
  })

  test('a listed origin may ask and read, with its cookies', async () => {
    box = await openToybox({ cors_origins: ['https://good.test'] })
    const headers = { Origin: 'https://good.test', 'Access-Control-Request-Method': 'POST' }
    const preflight = await box.call('OPTIONS', '/v1/toys', { key: null, headers })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-methods')).toContain('PATCH')
    const allowed = preflight.headers.get('access-control-allow-headers')!.toLowerCase().split(', ')
    expect(allowed).toEqual(expect.arrayContaining(['idempotency-key', 'mcp-protocol-version', 'mcp-method', 'mcp-name']))
    const call = await box.call('GET', '/v1/toys', { headers })
    expect(call.headers.get('access-control-allow-origin')).toBe('https://good.test')
    expect(call.headers.get('access-control-allow-credentials')).toBe('true')
    const readable = call.headers.get('access-control-expose-headers')!.toLowerCase().split(', ')
    expect(readable).toEqual(expect.arrayContaining(['date', 'x-request-id', 'www-authenticate']))
  })
})

const download = async (headers: Record<string, string> = {}) => await box.call('GET', '/files/abc', { key: null, headers })

describe('a download', () => {
  test('is an attachment that a browser neither shows nor runs', async () => {
    box = await openToybox()
    const response = await download()
    expect(await response.text()).toBe('0123456789')
    expect(response.headers.get('content-disposition')).toBe('attachment')
    expect(response.headers.get('content-security-policy')).toContain('sandbox')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('accept-ranges')).toBe('bytes')
  })

  test.each([
    ['bytes=2-4', '234', 'bytes 2-4/10'],
    ['bytes=7-', '789', 'bytes 7-9/10'],
    ['bytes=-3', '789', 'bytes 7-9/10'],
    ['bytes=-30', '0123456789', 'bytes 0-9/10'],
    ['bytes=5-99', '56789', 'bytes 5-9/10'],
  ])('answers the range %s', async (range, text, where) => {
    box = await openToybox()
    const response = await download({ Range: range })
    expect(response.status).toBe(206)
    expect(response.headers.get('content-range')).toBe(where)
    expect(await response.text()).toBe(text)
  })

  test.each(['bytes=4-2', 'bytes=1-2,4-5', 'lines=1-2', 'bytes=-', 'bytes=a-b'])('answers the whole to %s', async (range) => {
    box = await openToybox()
    const response = await download({ Range: range })
    expect(response.status).toBe(200)
    expect(await response.text()).toBe('0123456789')
  })

  test('can be streamed, and is seen to be cut short when its source fails', async () => {
    box = await openToybox()
    expect(await (await box.call('GET', '/stream/whole', { key: null })).text()).toBe('one two')
    expect(await (await box.call('HEAD', '/stream/whole', { key: null })).text()).toBe('')
    const broken = box.call('GET', '/stream/broken', { key: null }).then((response) => response.text())
    await expect(broken).rejects.toThrow(/terminated|fetch failed/)
    expect((await box.call('GET', '/healthz')).status).toBe(200)
  })

  test('answers a range only while it is the same file', async () => {
    box = await openToybox()
    expect((await download({ Range: 'bytes=1-2', 'If-Range': '"a"' })).status).toBe(206)
    expect((await download({ Range: 'bytes=1-2', 'If-Range': '"b"' })).status).toBe(200)
    expect(await errorOf(await download({ Range: 'bytes=10-' }))).toMatchObject({ status: 400, code: 'range_not_satisfiable' })
  })
})
