import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { X509Certificate } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import type { Pair } from '../../src/certificates/pair.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { certificate } from '../support/receiver.ts'
import { listening, plainly, secure, shownAt, shownBySmtp, startTls, told } from './shown.ts'

const timeout = { timeout: 100_000 }
const broken = 'certificate was replaced by an unusable one; the former is still in use'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pillarbox-files-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

/** A box whose API, SMTP and submission all show what lies in the folder. */
async function boxWith(cert = join(folder, 'cert.pem'), key = join(folder, 'key.pem')): Promise<Appliance> {
  return appliance({
    PILLARBOX_HTTP__TLS__CERT: cert,
    PILLARBOX_HTTP__TLS__KEY: key,
    PILLARBOX_HTTP__TLS__LISTEN: '127.0.0.1:0',
    PILLARBOX_SMTP__TLS__CERT: cert,
    PILLARBOX_SMTP__TLS__KEY: key,
    PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
    PILLARBOX_SUBMISSION__LISTEN: '127.0.0.1:0',
    PILLARBOX_SUBMISSION__LISTEN_TLS: '127.0.0.1:0',
  })
}

/** What each door of the box shows. */
async function everywhere(box: Appliance): Promise<string[]> {
  const { starttls, tls } = box.app.submissionAddresses
  return [
    await shownAt(box.app.httpAddresses.tls!.port),
    await shownBySmtp(box.smtp.port),
    await shownBySmtp(starttls[0]!.port),
    await shownAt(tls[0]!.port),
  ]
}

function serial({ cert }: Pair): string {
  return new X509Certificate(cert).serialNumber
}

function write(where: string, { cert, key }: Pair): void {
  writeFileSync(join(where, 'cert.pem'), cert)
  writeFileSync(join(where, 'key.pem'), key)
}

function turn(target: string, link: string): void {
  symlinkSync(target, `${link}.new`)
  renameSync(`${link}.new`, link)
}

test('a pair that is renamed into place is shown at every door without a restart, and what is open stays open', async () => {
  const [first, second] = [await certificate('mx.example.test'), await certificate('mx.example.test')]
  write(folder, first)
  const box = await boxWith()
  expect(new Set(await everywhere(box))).toEqual(new Set([serial(first)]))
  const api = await secure(box.app.httpAddresses.tls!.port, 'mx.example.test')
  const { session } = await startTls(box.smtp.port)

  mkdirSync(join(folder, 'new'))
  write(join(folder, 'new'), second)
  for (const name of ['cert.pem', 'key.pem']) renameSync(join(folder, 'new', name), join(folder, name))
  await expect.poll(async () => new Set(await everywhere(box)), timeout).toEqual(new Set([serial(second)]))

  expect(await session.say('NOOP')).toMatch(/^250/)
  session.destroy()
  const answer = new Promise<string>((resolve) => api.once('data', (chunk: Buffer) => resolve(chunk.toString())))
  api.write('GET /healthz HTTP/1.1\r\nHost: mx.example.test\r\nConnection: close\r\n\r\n')
  expect(await answer).toMatch(/^HTTP\/1\.1 200/)
  const { body } = await box.call('GET', plainly(box, '/v1/certificates'))
  const fingerprint = new X509Certificate(second.cert).fingerprint256.replaceAll(':', '').toLowerCase()
  expect(body.data).toMatchObject([
    { uses: ['mail', 'api'], source: 'file', file: join(folder, 'cert.pem'), fingerprint, problem: null },
  ])
})

test('links that are turned are followed: those of certbot, and a folder that is swapped whole', async () => {
  const pairs = [await certificate('mx.example.test'), await certificate('mx.example.test'), await certificate('mx.example.test')]
  for (const [index, pair] of pairs.entries()) {
    mkdirSync(join(folder, `archive${index}`))
    write(join(folder, `archive${index}`), pair)
  }
  // ours → live → archive0, and the folder “..data” of a mounted secret
  const [live, ours] = [join(folder, 'live'), join(folder, 'ours')]
  for (const made of [live, ours]) mkdirSync(made)
  symlinkSync('../archive0', join(live, '..data'))
  for (const name of ['cert.pem', 'key.pem']) {
    symlinkSync(`..data/${name}`, join(live, name))
    symlinkSync(`../live/${name}`, join(ours, name))
  }
  const box = await boxWith(join(ours, 'cert.pem'), join(ours, 'key.pem'))
  turn('../archive1', join(live, '..data'))
  await expect.poll(() => shownBySmtp(box.smtp.port), timeout).toBe(serial(pairs[1]!))
  for (const name of ['cert.pem', 'key.pem']) turn(`../archive2/${name}`, join(live, name))
  await expect.poll(() => shownBySmtp(box.smtp.port), timeout).toBe(serial(pairs[2]!))
  expect(told(box, broken)).toEqual([])
})

test('half a pair is not taken: the old one stays, the log says so once, the API says why, and the other half mends it', async () => {
  const [first, second] = [await certificate('mx.example.test'), await certificate('mx.example.test')]
  write(folder, first)
  const box = await boxWith()
  writeFileSync(join(folder, 'cert.pem'), second.cert)
  await expect.poll(() => told(box, broken).length, timeout).toBe(1)
  expect(told(box, broken)[0]).toMatchObject({ level: 'warn', problem: 'the private key does not belong to the certificate' })
  expect(new Set(await everywhere(box))).toEqual(new Set([serial(first)]))
  const { status, body } = await box.call('POST', plainly(box, '/v1/certificates/renew'))
  expect(status).toBe(200)
  expect(body.data[0]).toMatchObject({ problem: 'the private key does not belong to the certificate' })
  await box.call('POST', plainly(box, '/v1/certificates/renew'))
  expect(told(box, broken)).toHaveLength(1)

  writeFileSync(join(folder, 'key.pem'), second.key)
  await expect.poll(async () => new Set(await everywhere(box)), timeout).toEqual(new Set([serial(second)]))
  const { body: mended } = await box.call('GET', plainly(box, '/v1/certificates'))
  expect(mended.data[0]).toMatchObject({ problem: null })
})

test.each([
  ['cut short', (pair: Pair) => pair.cert.slice(0, 300), 'there is no certificate in PEM form'],
  ['with half of its issuer', (pair: Pair) => `${pair.cert}${pair.cert.slice(0, 300)}`, 'a certificate is incomplete'],
  ['empty', () => '', 'there is no certificate in PEM form'],
  ['garbage', (pair: Pair) => pair.cert.replace(/\nM/, '\nX'), 'a certificate is damaged'],
])('a certificate that is %s is not taken', async (_, text, problem) => {
  const pair = await certificate('mx.example.test')
  write(folder, pair)
  const box = await boxWith()
  writeFileSync(join(folder, 'cert.pem'), text(pair))
  const { body } = await box.call('POST', plainly(box, '/v1/certificates/renew'))
  expect(body.data).toMatchObject([{ problem }])
  expect(await shownBySmtp(box.smtp.port)).toBe(serial(pair))
  rmSync(join(folder, 'cert.pem'))
  const { body: gone } = await box.call('POST', plainly(box, '/v1/certificates/renew'))
  expect(gone.data[0]).toMatchObject({ problem: `${join(folder, 'cert.pem')} is missing` })
  expect(await shownBySmtp(box.smtp.port)).toBe(serial(pair))
})

test('what was replaced is an event of the operator', async () => {
  const [first, second] = [await certificate('mx.example.test'), await certificate('mx.example.test')]
  write(folder, first)
  const box = await boxWith()
  const sink = await listening(box, 'certificate.renewed', 'certificate.failed')
  write(folder, second)
  await box.call('POST', plainly(box, '/v1/certificates/renew'))
  expect(await shownBySmtp(box.smtp.port)).toBe(serial(second))
  const [event] = await sink.until(1)
  const { body } = await box.call('GET', plainly(box, '/v1/certificates'))
  expect(event!.body).toMatchObject({ type: 'certificate.renewed', identity_id: null, data: body.data[0] })
  expect((await box.call('GET', plainly(box, '/v1/events?types=certificate.renewed'))).body.data).toEqual([event!.body])
})

test('HUP takes over other files at once', async () => {
  const [first, second] = [await certificate('mx.example.test'), await certificate('mx.example.test')]
  write(folder, first)
  const box = await boxWith()
  const other = join(folder, 'other')
  mkdirSync(other)
  write(other, second)
  const names = { PILLARBOX_SMTP__TLS__CERT: join(other, 'cert.pem'), PILLARBOX_SMTP__TLS__KEY: join(other, 'key.pem') }
  const config = await loadConfig({ env: { ...box.env, ...names }, cwd: folder })
  expect(await box.app.reload(config)).toMatchObject({ restart: [] })
  expect(await shownBySmtp(box.smtp.port)).toBe(serial(second))
  expect(await shownAt(box.app.httpAddresses.tls!.port)).toBe(serial(first))
})

test('the API has TLS by a certificate of its own where the settings name none, and SMTP the same', async () => {
  const box = await appliance({ PILLARBOX_HTTP__TLS__LISTEN: '127.0.0.1:0', PILLARBOX_HOSTNAME: 'mx.example.test' })
  const { body } = await box.call('GET', plainly(box, '/v1/certificates'))
  expect(body.data).toMatchObject([
    { uses: ['mail', 'api'], source: 'self_signed', names: ['mx.example.test', 'localhost'], problem: null, renew_at: null },
  ])
  expect(await shownAt(box.app.httpAddresses.tls!.port)).toBe(await shownBySmtp(box.smtp.port))
  const refused = await box.call('POST', plainly(box, '/v1/certificates/renew'), { name: 'mx.example.test' })
  expect(refused).toMatchObject({ status: 409, body: { error: { code: 'acme_not_configured' } } })
})
