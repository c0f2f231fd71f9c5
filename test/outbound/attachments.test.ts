import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { fetchLimits, Outside } from '../../src/net/outside.ts'
import { attachmentsOf } from '../../src/outbound/compose/attachments.ts'
import { WorkLimiter } from '../../src/net/work-limiter.ts'
import { openPair, pair, send } from './outgoing.ts'

describe('base64', async () => {
  const { world, close } = await openPair()
  afterAll(close)

  test.each([
    ['line ends', 'aGVs\nbG8='],
    ['no padding', 'aGk'],
    ['too much padding', 'aGk=='],
    ['the alphabet of URLs', '_-8='],
    ['leftover bits', 'aGl='],
    ['spaces', 'aGk= '],
    ['a data URL', 'data:text/plain;base64,aGk='],
    ['nonsense', '!!!!'],
    ['text after the end', 'aGk=aGk='],
  ])('with %s is refused', async (_, content) => {
    const attachments = [
      { filename: 'good.txt', content: 'aGk=' },
      { filename: 'bad.txt', content },
    ]
    const { status, body } = await send(world, { to: world.bob.email, attachments })
    expect([status, body.error]).toMatchObject([400, { param: 'attachments[1].content', code: 'invalid_base64' }])
  })

  test('content and url exclude each other, and one is needed', async () => {
    for (const more of [{}, { content: 'aGk=', url: 'https://files.test/a' }]) {
      const { status, body } = await send(world, { to: world.bob.email, attachments: [{ filename: 'a', ...more }] })
      expect([status, body.error['param']]).toEqual([400, 'attachments[0]'])
    }
  })
})

describe('a URL', () => {
  test('whose server packs the file although it was asked not to is refused: nobody could open it', async () => {
    const { url } = await files((_, response) => {
      response.setHeader('content-encoding', 'gzip')
      response.end(gzipSync('PDF'))
    })
    const world = await pair({ PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8' })
    const { status, body } = await send(world, { to: world.bob.email, attachments: [{ filename: 'bill.pdf', url }] })
    expect([status, body.error]).toMatchObject([400, { param: 'attachments[0].url', code: 'url_unreachable' }])
    expect(body.error['message']).toContain('gzip')
  })

  test('is fetched where the operator allows it', async () => {
    const { url, asked } = await files((request, response) => {
      response.setHeader('content-type', 'application/pdf')
      response.end(request.url === '/large' ? Buffer.alloc(30 * 1024 * 1024) : 'PDF')
    })
    const world = await pair({ PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8' })
    const { body } = await send(world, { to: world.bob.email, attachments: [{ filename: 'bill', url: `${url}/bill` }] })
    expect(body.attachments).toMatchObject([{ filename: 'bill', content_type: 'application/pdf', size: 3 }])
    const large = await send(world, { to: world.bob.email, attachments: [{ filename: 'x', url: `${url}/large` }] })
    expect([large.status, large.body.error]).toMatchObject([400, { param: 'attachments[0].url', code: 'url_unreachable' }])
    expect(large.body.error['message']).toMatch(/has more than \d+ bytes/)
    expect(asked).toEqual(['/bill', '/large'])
  })

  test('whose file comes in chunks of an octet each is refused, and what was fetched counts no longer', async () => {
    const { url } = await files((request, response) => {
      if (request.url === '/large') response.end(Buffer.alloc(17_000_000))
      else {
        response.flushHeaders()
        response.socket!.end('1\r\na\r\n'.repeat(40_000))
      }
    })
    const world = await pair({ PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8' })
    const tiny = await send(world, { to: world.bob.email, attachments: [{ filename: 'x', url: `${url}/tiny` }] })
    expect([tiny.status, tiny.body.error]).toMatchObject([400, { param: 'attachments[0].url', code: 'url_unreachable' }])
    expect(tiny.body.error['message']).toContain('its response consists of more than 16384 chunks of less than 512 bytes')
    const send_at = new Date(Date.now() + 86_400_000).toISOString()
    for (let count = 0; count < 4; count += 1) {
      const attachments = [{ filename: 'x', url: `${url}/large` }]
      const { status } = await send(world, { to: world.bob.email, send_at, attachments })
      expect(status).toBe(201)
    }
  })

  test.each([
    ['a redirect', 302, /answered 302/],
    ['an error', 500, /answered 500/],
    ['nothing', 204, /answered 204/],
  ])('that answers %s is refused', async (_, status, why) => {
    const { url } = await files((_request, response) => void response.writeHead(status, { location: '/other' }).end())
    const world = await pair({ PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8' })
    const { body } = await send(world, { to: world.bob.email, attachments: [{ filename: 'x', url: `${url}/a` }] })
    expect(body.error).toMatchObject({ type: 'invalid_request', param: 'attachments[0].url' })
    expect(body.error['message']).toMatch(why)
  })

  test('is not asked when the message could not be sent anyway', async () => {
    const { url, asked } = await files((_, response) => void response.end('x'))
    const world = await pair({ PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8' })
    const { status } = await send(world, { to: 'eve@elsewhere.test', attachments: [{ filename: 'x', url }] })
    expect([status, asked]).toEqual([409, []])
  })

  test.each([
    'https://127.0.0.1/a',
    'https://[::1]/a',
    'https://10.1.2.3/a',
    'https://169.254.169.254/latest/meta-data',
    'https://[::ffff:127.0.0.1]/a',
    'https://2130706433/a',
    'https://inside.test/a',
    'https://localhost/a',
    'http://public.test/a',
    'https://user:secret@public.test/a',
    'https://public.test:25/a',
    'ftp://public.test/a',
    'file:///etc/passwd',
    'data:text/plain,x',
    '/etc/passwd',
  ])('%s is refused, and nobody is called', async (url) => {
    const dialled: string[] = []
    const outside = new Outside({ allow_networks: [], allow_http: false, resolve }, (options, answer) => {
      dialled.push(options.hostname)
      answer(new Error('dialled'), null)
    })
    onTestFinished(() => outside.close())
    const fetching = attachmentsOf([{ filename: 'x', url }], {
      outside,
      share: new WorkLimiter(fetchLimits).share('a'),
      signal: new AbortController().signal,
    })
    await expect(fetching).rejects.toMatchObject({ type: 'invalid_request', param: 'attachments[0].url' })
    expect(dialled).toEqual([])
  })
})

/** A server of files on loopback; `asked` is what it was asked for. */
async function files(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    answer(request, response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

async function resolve(host: string): Promise<string[]> {
  return [host === 'public.test' ? '198.41.0.4' : '10.0.0.7']
}
