import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { shownBySmtp } from '../certificates/shown.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { freePort } from '../support/free-port.ts'
import { peer } from '../support/peer.ts'
import { addedDomain } from '../support/verified-domain.ts'
import { caddy, type Front, nginx, socketThrough, through } from './front.ts'
import { asking, pebble } from './pebble.ts'

const setpriv = peer('setpriv', 'apt-get install util-linux')
const fronts = [
  { name: 'nginx', program: peer('nginx', 'apt-get install nginx-light'), begin: nginx },
  { name: 'Caddy', program: peer('caddy'), begin: caddy },
].filter(({ program }) => program !== undefined && setpriv !== undefined)

interface Scene {
  box: Appliance
  front: Front
  bearer: Record<string, string>
}

describe.each(fronts)('a box behind $name, by the example we ship', ({ name, program, begin }) => {
  async function scene(env: Record<string, string> = {}): Promise<Scene> {
    const box = await appliance({
      PILLARBOX_PUBLIC_URL: 'https://box.example.com',
      PILLARBOX_HTTP__TRUSTED_PROXIES: '127.0.0.1',
      ...env,
    })
    const { port } = box.app.httpAddresses.plain!
    box.url = `http://127.0.0.1:${port}`
    return { box, front: await begin(program!, port), bearer: { Authorization: `Bearer ${box.key}` } }
  }

  test('answers calls under its name, with the addresses of the clients in the log, whatever they say of themselves', async () => {
    const { box, front, bearer } = await scene()
    const made = await through(front, '/v1/identities', {
      method: 'POST',
      headers: bearer,
      body: '{"name":"Ada"}',
      from: '127.0.0.2',
    })
    expect(made).toMatchObject({ status: 201, body: { email: 'ada@pillarbox.test' } })
    expect(made.headers['strict-transport-security']).toContain('max-age')
    const lying = { ...bearer, 'X-Forwarded-For': '203.0.113.7, 127.0.0.1', 'X-Real-IP': '203.0.113.7' }
    expect((await through(front, '/v1/identities', { headers: lying, from: '127.0.0.3' })).status).toBe(200)
    const lines = box.logged.map((line) => JSON.parse(line)).filter(({ route }) => route === '/v1/identities')
    expect(lines.map(({ address }) => address)).toEqual(['127.0.0.2', '127.0.0.3'])
  })

  test('limits callers one by one, not the web server', async () => {
    const { front } = await scene({ PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '3' })
    const ask = async (from: string): Promise<number> => (await through(front, '/v1/identities', { from })).status
    expect([await ask('127.0.0.2'), await ask('127.0.0.2'), await ask('127.0.0.2'), await ask('127.0.0.2')]).toEqual([
      401, 401, 401, 429,
    ])
    expect(await ask('127.0.0.3')).toBe(401)
  })

  test('opens WebSockets of both protocols, and events come through', async () => {
    const { box, front, bearer } = await scene()
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const asked = await through(front, '/v1/realtime/token', { method: 'POST', headers: bearer, body: '{}' })
    expect(asked.body.url).toBe('wss://box.example.com/v1/realtime')
    const plain = await socketThrough(front, `/v1/realtime?token=${asked.body.token}`)
    plain.send(JSON.stringify({ type: 'subscribe', channel: 'email_messages', identity_id: ada.id }))
    const frames: Record<string, ReturnType<typeof JSON.parse>>[] = []
    plain.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString())))
    await expect.poll(() => frames.map(({ type }) => type)).toContain('subscribed')
    await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Hello' }, 'Hi') })
    await expect.poll(() => frames.find(({ type }) => type === 'event')?.['event'].data.subject).toBe('Hello')
    const phoenix = await socketThrough(front, `/realtime/v1/websocket?apikey=${asked.body.token}&vsn=1.0.0`)
    phoenix.send(JSON.stringify({ topic: 'phoenix', event: 'heartbeat', payload: {}, ref: '1' }))
    const [beat] = (await once(phoenix, 'message')) as [Buffer]
    expect(JSON.parse(beat.toString())).toMatchObject({ event: 'phx_reply', payload: { status: 'ok' } })
  })

  test('takes large messages, and what is too large is refused', { timeout: 120_000 }, async () => {
    const { box, front, bearer } = await scene()
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const letter = (octets: number): string => {
      const content = Buffer.alloc(octets, 'x').toString('base64')
      return JSON.stringify({ to: ada.email, subject: 'Large', attachments: [{ filename: 'a.bin', content }] })
    }
    const path = `/v1/identities/${ada.id}/emails`
    const sent = await through(front, path, { method: 'POST', headers: bearer, body: letter(17 * 2 ** 20) })
    expect(sent).toMatchObject({ status: 201, body: { has_attachments: true } })
    // it is composed to more than a message may have: that is the box's own word, on a body of 39 MiB
    const heavy = await through(front, path, { method: 'POST', headers: bearer, body: letter(29 * 2 ** 20) })
    expect(heavy).toMatchObject({ status: 400, body: { error: { type: 'invalid_request' } } })
    expect(heavy.headers['x-request-id']).toMatch(/^req_/)
    // known by its length alone. A web server that answers early resets the connection soon after, and what a client is still sending fails
    const refused = await through(front, path, {
      method: 'POST',
      headers: bearer,
      body: letter(2 ** 20),
      contentLength: 44 * 2 ** 20,
    })
    expect(refused).toMatchObject({
      status: 400,
      body: { error: { type: 'invalid_request', code: 'body_too_large', status: 400 } },
    })
  })

  test('takes files of old mail that are larger than any call', { timeout: 120_000 }, async () => {
    const { box, front, bearer } = await scene()
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const letter = 'From: sam@sender.test\r\nSubject: Old\r\n\r\n'
    const headers = { ...bearer, 'Content-Type': 'application/octet-stream' }
    const body = Buffer.alloc(43 * 2 ** 20, `${'x'.repeat(76)}\r\n`)
    body.write(letter)
    const begun = await through(front, `/v1/identities/${ada.id}/import`, { method: 'POST', headers, body })
    expect(begun).toMatchObject({ status: 201, body: { kind: 'import' } })
  })

  test('lets a call wait for a message', async () => {
    const { box, front, bearer } = await scene()
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const waiting = through(front, `/v1/identities/${ada.id}/wait?channel=email&timeout=120`, { headers: bearer })
    await expect.poll(async () => (await box.call('GET', '/v1/identities')).status).toBe(200)
    await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Code' }, 'Your code is 493817.') })
    expect(await waiting).toMatchObject({ status: 200, body: { timed_out: false, codes: ['493817'] } })
    if (name !== 'nginx') return
    // nginx gives up by itself after 60 s unless told otherwise; the longest wait has 120 s
    const example = readFileSync(new URL('../../config/nginx.conf.example', import.meta.url), 'utf8')
    expect(Number(/proxy_read_timeout\s+(\d+)s;/.exec(example)![1])).toBeGreaterThan(125)
  })

  test('shows the MTA-STS policy of a domain at its policy host', async () => {
    const { box, front } = await scene({ PILLARBOX_HOSTNAME: 'mx.example.com' })
    await addedDomain(box, 'example.com')
    const policy = await through(front, '/.well-known/mta-sts.txt', { host: 'mta-sts.example.com' })
    expect(policy).toMatchObject({ status: 200, body: expect.stringContaining('mx: mx.example.com') })
    expect((await through(front, '/.well-known/mta-sts.txt')).status).toBe(404)
  })

  test('leads everybody from port 80 to its name', async () => {
    const { front } = await scene()
    const answer = await fetch(`http://127.0.0.1:${front.http}/v1/identities?limit=1`, {
      redirect: 'manual',
      headers: { Host: 'mx.example.com' },
    })
    expect(answer.status).toBe(308)
    expect(answer.headers.get('location')).toContain('/v1/identities?limit=1')
  })

  test('says so when the box is not there', async () => {
    const { box, front, bearer } = await scene()
    await box.app.stop()
    const answer = await through(front, '/v1/identities', { headers: bearer })
    expect(answer.status).toBe(name === 'nginx' ? 500 : 502)
    if (name !== 'nginx') return
    expect(answer.headers['retry-after']).toBe('5')
    expect(answer.body.error).toMatchObject({ type: 'internal_error', code: 'unavailable', status: 500 })
  })

  test('answers a CA for its own names from a directory, beside the box', async () => {
    const { front } = await scene()
    if (front.webroot === undefined) return
    const folder = join(front.webroot, '.well-known', 'acme-challenge')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'token-of-certbot'), 'token-of-certbot.thumbprint')
    const ask = (token: string): Promise<Response> => fetch(`http://127.0.0.1:${front.http}/.well-known/acme-challenge/${token}`)
    const answer = await ask('token-of-certbot')
    expect([answer.status, await answer.text()]).toEqual([200, 'token-of-certbot.thumbprint'])
    // one that is no file is the box's to answer
    const other = await ask('another')
    expect([other.status, other.headers.has('x-request-id')]).toEqual([404, true])
  })

  const ca = peer('pebble')
  test.runIf(ca !== undefined)('lets the box prove the name of its mail server to a CA, through port 80', async () => {
    const dns = await DnsStub.start()
    onTestFinished(() => dns.close())
    dns.a('mx.example.com', '127.0.0.1')
    const port = await freePort()
    // the web server first: the CA is told where it listens
    const front = await begin(program!, port)
    const from = await pebble(ca!, { httpPort: front.http, dns: dns.servers[0]! })
    const box = await appliance({
      ...asking(from),
      PILLARBOX_HTTP__LISTEN: `127.0.0.1:${port}`,
      PILLARBOX_HOSTNAME: 'mx.example.com',
      PILLARBOX_PUBLIC_URL: 'https://box.example.com',
      PILLARBOX_HTTP__TRUSTED_PROXIES: '127.0.0.1',
    })
    box.url = `http://127.0.0.1:${port}`
    const { body } = await box.call('POST', '/v1/certificates/renew')
    expect(body.data).toMatchObject([{ uses: ['mail'], names: ['mx.example.com'], source: 'acme', problem: null }])
    const strict = { servername: 'mx.example.com', ca: from.root, rejectUnauthorized: true }
    expect(await shownBySmtp(box.smtp.port, strict)).toMatch(/^[0-9A-F]+$/)
  })
})
