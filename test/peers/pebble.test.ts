import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fetchSecurely, listening, secure, shownAt, shownBySmtp, startTls, told } from '../certificates/shown.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { freePort } from '../support/free-port.ts'
import { movable } from '../support/held-clock.ts'
import { peer } from '../support/peer.ts'
import { addedDomain } from '../support/verified-domain.ts'
import { asking, type Ca, type CaInput, pebble } from './pebble.ts'

const program = peer('pebble')
const possible = [program, peer('setpriv', 'apt-get install util-linux')].every((one) => one !== undefined)

const mx = 'mx.example.test'
const api = 'box.example.test'
const timeout = { timeout: 100_000, interval: 250 }
const day = 86_400_000

interface Scene {
  box: Appliance
  ca: Ca
  dns: DnsStub
  port: number
  clock: ReturnType<typeof movable>
}

/** A box that shows TLS at every door and asks Pebble for it; its names lead to loopback, where the CA looks at `port`. */
async function scene(env: Record<string, string> = {}, input: Partial<CaInput> = {}): Promise<Scene> {
  const dns = await DnsStub.start()
  onTestFinished(() => dns.close())
  for (const name of [mx, api]) dns.a(name, '127.0.0.1')
  const port = await freePort()
  const ca = await pebble(program!, { httpPort: port, dns: dns.servers[0]!, ...input })
  const clock = movable()
  const settings = {
    ...asking(ca),
    PILLARBOX_ACME__LISTEN: `127.0.0.1:${port}`,
    PILLARBOX_HOSTNAME: mx,
    PILLARBOX_PUBLIC_URL: `https://${api}`,
    PILLARBOX_HTTP__TLS__LISTEN: '127.0.0.1:0',
    PILLARBOX_SUBMISSION__LISTEN: '127.0.0.1:0',
    PILLARBOX_SUBMISSION__LISTEN_TLS: '127.0.0.1:0',
    PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
    PILLARBOX_DNS__SERVERS: dns.servers[0]!,
    ...env,
  }
  const box = await appliance(Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== '')), clock, {
    schedule: {},
  })
  plain(box)
  return { box, ca, dns, port, clock }
}

/** Calls go to the port in the clear: the public URL is nobody's on this machine. */
function plain(box: Appliance): void {
  box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
}

async function listed(box: Appliance): Promise<Record<string, ReturnType<typeof JSON.parse>>[]> {
  return (await box.call('GET', '/v1/certificates')).body.data
}

/** What each door shows to a client that trusts this root alone, and insists on the name. */
async function everywhere({ box }: Scene, ca: string): Promise<string[]> {
  const { starttls, tls } = box.app.submissionAddresses
  const strict = { ca, rejectUnauthorized: true }
  return [
    await shownAt(box.app.httpAddresses.tls!.port, api, strict),
    await shownAt(box.app.httpAddresses.tls!.port, mx, strict),
    await shownBySmtp(box.smtp.port, strict),
    await shownBySmtp(starttls[0]!.port, strict),
    await shownAt(tls[0]!.port, mx, strict),
  ]
}

describe.runIf(possible)('certificates by ACME, from Pebble', () => {
  test('are obtained after the start and shown at every door, kept for the owner alone, and used again after a restart', async () => {
    const all = await scene()
    const { box, ca } = all
    // mail comes in meanwhile, under a certificate of our own
    expect((await listed(box)).map(({ source, uses }) => [source, uses])).toEqual([
      ['acme', []],
      ['self_signed', ['mail', 'api']],
    ])
    await expect.poll(async () => (await listed(box))[0]!['issuer'], timeout).toMatch(/^Pebble/)
    const [serial, ...others] = await everywhere(all, ca.root)
    expect(new Set(others)).toEqual(new Set([serial]))
    expect((await fetchSecurely(box.app.httpAddresses.tls!.port, api, '/healthz', ca.root)).status).toBe(200)
    const [shown, ...more] = await listed(box)
    expect(more).toEqual([])
    expect(shown).toMatchObject({ uses: ['mail', 'api'], source: 'acme', problem: null, next_try_at: null })
    expect(shown!['names'].toSorted()).toEqual([api, mx])

    const folder = join(box.directory, 'data-keys', 'acme')
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    const [of] = readdirSync(folder)
    for (const file of ['account.pem', 'main.pem', 'state.json'])
      expect(statSync(join(folder, of!, file)).mode & 0o777).toBe(0o600)
    expect(shown!['file']).toBe(join(folder, of!, 'main.pem'))

    // the CA is gone, and not missed
    await ca.stop()
    await box.restart()
    plain(box)
    expect(new Set(await everywhere(all, ca.root))).toEqual(new Set([serial]))
    expect((await box.call('POST', '/v1/certificates/renew')).body.data).toMatchObject([
      { problem: null, fingerprint: shown!['fingerprint'] },
    ])
    expect(told(box, 'requesting a certificate')).toHaveLength(1)
    expect(told(box, 'requesting a certificate')[0]).toMatchObject({ names: [mx, api] })
    expect(box.logged.join('\n')).not.toContain('PRIVATE KEY')
  })

  test('are renewed before they run out, at every door, while sessions go on; the operator hears of it', async () => {
    const all = await scene()
    const { box, ca, clock } = all
    await box.call('POST', '/v1/certificates/renew')
    const [first] = await everywhere(all, ca.root)
    const [before] = await listed(box)
    const sink = await listening(box, 'certificate.renewed')
    const open = await secure(box.app.httpAddresses.tls!.port, api, { ca: ca.root })
    const { session } = await startTls(box.smtp.port)

    // not due: nothing is asked
    clock.ahead = Date.parse(before!['renew_at']) - Date.now() - day
    await box.call('POST', '/v1/certificates/renew')
    expect(told(box, 'requesting a certificate')).toHaveLength(1)
    expect(Date.parse(before!['not_after']) - Date.parse(before!['renew_at'])).toBe(30 * day)

    clock.ahead += 2 * day
    await expect.poll(async () => (await listed(box))[0]!['fingerprint'], timeout).not.toBe(before!['fingerprint'])
    const doors = new Set(await everywhere(all, ca.root))
    expect(doors.size).toBe(1)
    expect(doors.has(first!)).toBe(false)
    expect(await session.say('NOOP')).toMatch(/^250/)
    expect(open.destroyed).toBe(false)
    session.destroy()
    open.destroy()
    const [event] = await sink.until(1)
    expect(event!.body).toMatchObject({ type: 'certificate.renewed', data: { source: 'acme', problem: null } })
  })

  test('that are refused say what the CA said; the box waits, also after a restart, never tries too often, and goes on once all is well', async () => {
    const { box, dns, clock } = await scene({ PILLARBOX_HTTP__TLS__LISTEN: '' })
    const sink = await listening(box, 'certificate.failed')
    dns.drop(mx, 'A')
    const { status, body } = await box.call('POST', '/v1/certificates/renew')
    expect(status).toBe(200)
    const [main] = body.data
    expect(main).toMatchObject({ source: 'acme', uses: [], issuer: null, names: [mx] })
    expect(main.problem).toMatch(/^mx\.example\.test: CA error: .*(?:DNS|resolve|IP)/i)
    const wait = Date.parse(main.next_try_at) - Date.parse(main.tried_at)
    expect(wait).toBeGreaterThan(4 * 60_000)
    expect(wait).toBeLessThan(6 * 60_000)
    expect((await sink.until(1))[0]!.body).toMatchObject({ data: { problem: main.problem } })

    await box.restart()
    plain(box)
    expect((await listed(box))[0]).toMatchObject({ problem: main.problem, next_try_at: main.next_try_at })
    for (let tries = 2; tries <= 4; tries++) await box.call('POST', '/v1/certificates/renew')
    const refused = await box.call('POST', '/v1/certificates/renew')
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'acme_tries' } } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3000)
    expect(told(box, 'requesting a certificate')).toHaveLength(4)
    // the same reason is told once
    expect(sink.received).toHaveLength(1)
    const [waiting] = await listed(box)
    expect(Date.parse(waiting!['next_try_at']) - Date.parse(waiting!['tried_at'])).toBeGreaterThan(50 * 60_000)

    dns.a(mx, '127.0.0.1')
    clock.ahead = 2 * 3_600_000
    await expect.poll(async () => (await listed(box))[0]!['problem'], timeout).toBe(null)
    expect((await listed(box))[0]).toMatchObject({ uses: ['mail'], names: [mx], next_try_at: null })
  })

  test('are proved by files that another web server serves', async () => {
    const webroot = mkdtempSync(join(tmpdir(), 'pillarbox-webroot-'))
    onTestFinished(() => rmSync(webroot, { recursive: true, force: true }))
    const { box, port } = await scene({
      PILLARBOX_ACME__LISTEN: '',
      PILLARBOX_ACME__WEBROOT: webroot,
      PILLARBOX_HTTP__TLS__LISTEN: '',
    })
    const modes: number[] = []
    const server = createServer(({ url }, response) => {
      const file = join(webroot, url!)
      modes.push(statSync(file).mode & 0o777)
      response.end(readFileSync(file))
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { body } = await box.call('POST', '/v1/certificates/renew')
    expect(body.data).toMatchObject([{ uses: ['mail'], source: 'acme', problem: null }])
    expect(new Set(modes)).toEqual(new Set([0o644]))
    expect(readdirSync(join(webroot, '.well-known', 'acme-challenge'))).toEqual([])
  })

  test('are proved by the port of the API, which a proxy on port 80 leads to', async () => {
    const port = await freePort()
    const env = { PILLARBOX_ACME__LISTEN: '', PILLARBOX_HTTP__TLS__LISTEN: '', PILLARBOX_HTTP__LISTEN: `127.0.0.1:${port}` }
    const { box } = await scene(env, { httpPort: port })
    const { body } = await box.call('POST', '/v1/certificates/renew')
    expect(body.data).toMatchObject([{ uses: ['mail'], source: 'acme', problem: null }])
    expect((await fetch(`${box.url}/.well-known/acme-challenge/nothing`)).status).toBe(404)
  })

  test('each domain has one of its own for its policy host, and one that is not ready costs the others nothing', async () => {
    const all = await scene()
    const { box, ca, dns } = all
    for (const name of ['shop.test', 'late.test']) dns.a(`mta-sts.${name}`, '127.0.0.1')
    box.dns = dns
    await addedDomain(box, 'shop.test')
    await addedDomain(box, 'late.test')
    dns.drop('mta-sts.late.test', 'A')
    const { body } = await box.call('POST', '/v1/certificates/renew')
    expect(body.data).toMatchObject([
      { uses: ['mail', 'api'], source: 'acme', problem: null },
      { uses: ['api'], names: ['mta-sts.shop.test'], source: 'acme', problem: null },
      {
        uses: [],
        names: ['mta-sts.late.test'],
        source: 'acme',
        problem: expect.stringContaining('mta-sts.late.test: CA error'),
      },
    ])
    const { port } = box.app.httpAddresses.tls!
    const policy = await fetchSecurely(port, 'mta-sts.shop.test', '/.well-known/mta-sts.txt', ca.root)
    expect(policy).toMatchObject({ status: 200, body: expect.stringContaining('version: STSv1') })
    expect((await fetchSecurely(port, api, '/healthz', ca.root)).status).toBe(200)
    // a name that is nobody's is shown the usual one
    expect(await shownAt(port, 'mta-sts.late.test')).toBe(await shownAt(port, api))

    await box.restart()
    plain(box)
    expect((await fetchSecurely(box.app.httpAddresses.tls!.port, 'mta-sts.shop.test', '/healthz', ca.root)).status).toBe(200)
    const { body: domains } = await box.call('GET', '/v1/domains')
    const late = domains.data.find(({ name }) => name === 'late.test')
    await box.call('DELETE', `/v1/domains/${late.id}`)
    expect((await listed(box)).map(({ names }) => names[0])).not.toContain('mta-sts.late.test')
  })

  test('of a CA that wants to know whose account it is', async () => {
    const key = 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W'
    const binding = { kid: 'kid-1', key }
    const env = { PILLARBOX_ACME__EAB_KEY_ID: 'kid-1', PILLARBOX_ACME__EAB_HMAC_KEY: key, PILLARBOX_HTTP__TLS__LISTEN: '' }
    const { box } = await scene(env, { binding })
    expect((await box.call('POST', '/v1/certificates/renew')).body.data).toMatchObject([{ source: 'acme', problem: null }])
    const stranger = await scene({ PILLARBOX_HTTP__TLS__LISTEN: '' }, { binding })
    const { body } = await stranger.box.call('POST', '/v1/certificates/renew')
    expect(body.data[0].problem).toMatch(/^CA error: .+ \(externalAccountRequired\)$/)
  })
})
