import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { freePort } from '../support/free-port.ts'
import { certificate } from '../support/receiver.ts'
import { answer, careless, lyingCa, type Manner } from './lying-ca.ts'
import { told } from './shown.ts'

const problem = (detail: string, type: string): object => ({ type: `urn:ietf:params:acme:error:${type}`, detail })

async function boxOf(ca: { directory: string; ca_file: string }, env: Record<string, string> = {}): Promise<Appliance> {
  return appliance({
    PILLARBOX_ACME__AGREE_TERMS: 'true',
    PILLARBOX_ACME__DIRECTORY: ca.directory,
    PILLARBOX_ACME__CA_FILE: ca.ca_file,
    PILLARBOX_HOSTNAME: 'mx.example.test',
    ...env,
  })
}

/** The certificate that is wanted, after one try. */
async function tried(box: Appliance): Promise<Record<string, ReturnType<typeof JSON.parse>>> {
  const { status, body } = await box.call('POST', '/v1/certificates/renew')
  expect(status).toBe(200)
  return body.data[0]
}

const lies: [string, Manner, RegExp][] = [
  ['is out of order', (_, response) => void response.writeHead(503).end(), /^The CA answered 503$/],
  [
    'has enough of us',
    (_, response) => answer(response, 429, problem('too many certificates', 'rateLimited')),
    /^CA error: too many certificates \(rateLimited\)$/,
  ],
  [
    'refuses one of several names',
    (_, response) =>
      answer(response, 403, {
        ...problem('some names are refused', 'rejectedIdentifier'),
        subproblems: [
          { ...problem('the policy forbids it', 'rejectedIdentifier'), identifier: { type: 'dns', value: 'mx.example.test' } },
        ],
      }),
    /^CA error: some names are refused; mx\.example\.test: the policy forbids it \(rejectedIdentifier\)$/,
  ],
  [
    'speaks no JSON',
    (_, response) => void response.writeHead(200, { 'Content-Type': 'application/json' }).end('<html>'),
    /^the response of 127\.0\.0\.1:\d+ is not JSON$/,
  ],
  [
    'never ends',
    (_, response) => {
      const pour = (): void => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      }
      response.on('drain', pour)
      pour()
    },
    /^the response of 127\.0\.0\.1:\d+ is larger than 524288 bytes$/,
  ],
  ['hangs up', (request) => void request.socket.destroy(), /^127\.0\.0\.1:\d+ could not be reached: socket hang up$/],
  [
    'leads into the clear',
    (_, response) => answer(response, 200, { newNonce: 'http://127.0.0.1:1/', newAccount: 'http://127.0.0.1:1/' }),
    /^127\.0\.0\.1:1 could not be reached: it is not an https URL$/,
  ],
]

test.each(lies)('a CA that %s gives no certificate, and the reason is told', async (_, manner, words) => {
  const ca = await lyingCa(manner)
  const box = await boxOf(ca)
  const { problem: said, next_try_at, tried_at } = await tried(box)
  expect(said).toMatch(words)
  expect(Date.parse(next_try_at)).toBeGreaterThan(Date.parse(tried_at) + 4 * 60_000)
  expect(told(box, 'certificate could not be obtained')).toMatchObject([
    { level: 'warn', problem: said, names: ['mx.example.test'] },
  ])
})

test('a CA that leads elsewhere is not followed', async () => {
  const other = await lyingCa((_, response) => answer(response, 200, {}))
  const ca = await lyingCa((_, response) => void response.writeHead(302, { Location: other.directory }).end())
  expect((await tried(await boxOf(ca)))['problem']).toMatch(/directory/)
  expect(other.asked).toEqual([])
})

test('a CA whose server nobody vouches for is not spoken to, and one that is not there is no harm', async () => {
  const ca = await lyingCa((_, response) => answer(response, 200, {}))
  const other = await lyingCa((_, response) => answer(response, 200, {}))
  const box = await boxOf({ ...ca, ca_file: other.ca_file })
  expect((await tried(box))['problem']).toMatch(/could not be reached: .*self-signed/)
  expect(ca.asked).toEqual([])
  const nobody = await boxOf({ directory: `https://127.0.0.1:${await freePort()}/dir`, ca_file: ca.ca_file })
  expect((await tried(nobody))['problem']).toMatch(/could not be reached: connect ECONNREFUSED/)
})

test('a CA that asks for a pause has it', async () => {
  const ca = await lyingCa((_, response) => answer(response, 429, problem('later', 'rateLimited'), { 'Retry-After': '86400' }))
  const { next_try_at, tried_at } = await tried(await boxOf(ca))
  expect(Date.parse(next_try_at) - Date.parse(tried_at)).toBeGreaterThanOrEqual(86_400_000)
})

test('a CA that hands out what is no token writes no file of ours', async () => {
  const webroot = mkdtempSync(join(tmpdir(), 'pillarbox-webroot-'))
  onTestFinished(() => rmSync(webroot, { recursive: true, force: true }))
  const ca = await lyingCa(() => undefined)
  ca.manner = careless(() => ca.url, { token: '../../../evil' })
  const box = await boxOf(ca, { PILLARBOX_ACME__WEBROOT: webroot })
  expect((await tried(box))['problem']).toBe('The CA sent an invalid challenge token')
  expect(readdirSync(webroot)).toEqual([])
})

test('a CA that wants more authorizations than names were asked for is asked for none of them', async () => {
  const ca = await lyingCa(() => undefined)
  ca.manner = careless(() => ca.url, { authorizations: 2000 })
  expect((await tried(await boxOf(ca)))['problem']).toBe('The CA requires 2000 authorizations for 1 name')
  expect(ca.asked).not.toContain('/authz')
})

test('a web root that cannot be written to is named', async () => {
  const ca = await lyingCa(() => undefined)
  ca.manner = careless(() => ca.url, { token: 'dG9rZW4' })
  const box = await boxOf(ca, { PILLARBOX_ACME__WEBROOT: '/proc/nothing' })
  expect((await tried(box))['problem']).toMatch(/^acme\.webroot cannot be written to: ENOENT.*\/proc\/nothing\/\.well-known/)
})

test('a certificate for another key, or another name, is not taken', async () => {
  const ca = await lyingCa(() => undefined)
  const { cert } = await certificate('mx.example.test')
  ca.manner = careless(() => ca.url, { chain: cert })
  const box = await boxOf(ca)
  expect(await tried(box)).toMatchObject({
    issuer: null,
    problem: 'The CA issued an unusable certificate: the private key does not belong to the certificate',
  })
  ca.manner = careless(() => ca.url, { chain: 'nothing' })
  expect((await tried(box))['problem']).toMatch(/there is no certificate in PEM form$/)
  expect((await box.call('GET', '/v1/certificates')).body.data[1]).toMatchObject({ source: 'self_signed', uses: ['mail'] })
})

test('a try is on disk before it is made, and a box that stops does not wait for the CA', async () => {
  const { promise: reached, resolve } = Promise.withResolvers<void>()
  const ca = await lyingCa(() => resolve())
  const box = await boxOf(ca)
  const asked = box.call('POST', '/v1/certificates/renew').catch(() => undefined)
  await reached
  const folder = join(box.directory, 'data-keys', 'acme')
  const state = (): Record<string, Record<string, unknown>> =>
    JSON.parse(readFileSync(join(folder, readdirSync(folder)[0]!, 'state.json'), 'utf8'))
  expect(state()['main']).toMatchObject({ failures: 1, names: ['mx.example.test'] })
  expect(state()['main']!['next_try_at']).toBeGreaterThan(Date.now())
  await box.app.stop()
  await asked
  // it was not the CA's fault
  expect(state()['main']).toMatchObject({ failures: 0, next_try_at: null, problem: null })
})

test('what is not for ACME is left alone: a host without a dot, an address, what has files of its own', async () => {
  const ca = await lyingCa((_, response) => void response.writeHead(503).end())
  const box = await boxOf(ca, {
    PILLARBOX_HOSTNAME: 'localhost',
    PILLARBOX_HTTP__TLS__LISTEN: '127.0.0.1:0',
    PILLARBOX_PUBLIC_URL: 'https://127.0.0.1',
  })
  box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  expect((await box.call('POST', '/v1/certificates/renew')).body.data).toMatchObject([{ source: 'self_signed' }])
  expect(ca.asked).toEqual([])
  const refused = await box.call('POST', '/v1/certificates/renew', { name: 'mx.example.test' })
  expect(refused).toMatchObject({ status: 404 })
})

test('HUP begins with ACME, changes the CA, and ends it', async () => {
  const [one, other] = [
    await lyingCa((_, response) => void response.writeHead(503).end()),
    await lyingCa((_, response) => void response.writeHead(500).end()),
  ]
  const box = await appliance({ PILLARBOX_HOSTNAME: 'mx.example.test' })
  const reload = async (env: Record<string, string>): Promise<void> => {
    expect(await box.app.reload(await loadConfig({ env: { ...box.env, ...env }, cwd: box.directory }))).toMatchObject({
      restart: [],
    })
  }
  const by = (ca: typeof one): Record<string, string> => ({
    PILLARBOX_ACME__AGREE_TERMS: 'true',
    PILLARBOX_ACME__DIRECTORY: ca.directory,
    PILLARBOX_ACME__CA_FILE: ca.ca_file,
  })
  await reload(by(one))
  expect((await tried(box))['problem']).toBe('The CA answered 503')
  await reload(by(other))
  expect((await tried(box))['problem']).toBe('The CA answered 500')
  await reload({})
  expect((await box.call('POST', '/v1/certificates/renew')).body.data).toMatchObject([{ source: 'self_signed', uses: ['mail'] }])
  // what the one said is kept for when it is asked again
  await reload(by(one))
  expect((await box.call('GET', '/v1/certificates')).body.data[0]).toMatchObject({ problem: 'The CA answered 503' })
})

test('port 80 has challenges only, and leads everybody else to the public URL', async () => {
  const ca = await lyingCa(() => undefined)
  const port = await freePort()
  const { promise: seen, resolve } = Promise.withResolvers<string>()
  const walk = careless(() => ca.url, { token: 'dG9rZW4' })
  ca.manner = (request, response) => {
    if (request.url !== '/challenge') return walk(request, response)
    const look = async (): Promise<void> => {
      const found = await fetch(`http://127.0.0.1:${port}/.well-known/acme-challenge/dG9rZW4`)
      resolve(await found.text())
      answer(response, 400, problem('enough', 'malformed'))
    }
    void look()
  }
  const box = await boxOf(ca, { PILLARBOX_ACME__LISTEN: `127.0.0.1:${port}`, PILLARBOX_PUBLIC_URL: 'https://box.example.test' })
  box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  const at = async (path: string, options: RequestInit = {}): Promise<[number, string | null]> => {
    const found = await fetch(`http://127.0.0.1:${port}${path}`, { redirect: 'manual', ...options })
    await found.text()
    return [found.status, found.headers.get('location')]
  }
  expect(await at('/v1/emails?limit=1')).toEqual([308, 'https://box.example.test/v1/emails?limit=1'])
  expect(await at('//evil.test/x', { headers: { Host: 'evil.test' } })).toEqual([308, 'https://box.example.test//evil.test/x'])
  expect(await at('/v1/session', { method: 'POST', body: '{}' })).toEqual([308, 'https://box.example.test/v1/session'])
  expect(await at('/.well-known/acme-challenge/dG9rZW4')).toEqual([404, null])
  expect((await tried(box))['problem']).toBe('CA error: enough (malformed)')
  expect(await seen).toMatch(/^dG9rZW4\.[\w-]{43}$/)
  // taken away again
  expect(await at('/.well-known/acme-challenge/dG9rZW4')).toEqual([404, null])
  expect(existsSync(join(box.directory, 'data-keys', 'acme'))).toBe(true)
})
