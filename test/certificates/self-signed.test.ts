import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, createServer } from 'node:tls'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'

let directory: string
beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'pillarbox-certificate-')), 'tls')
})
afterEach(() => rm(join(directory, '..'), { recursive: true, force: true }))

test('serves TLS that a client who trusts it accepts, by each of its names', async () => {
  const { cert, key } = await certificate(directory, 'mx.example.com')
  const server = createServer({ cert, key }, (socket) => socket.end('hello'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  for (const servername of ['mx.example.com', 'localhost']) {
    const socket = connect({ host: '127.0.0.1', port, ca: cert, servername, minVersion: 'TLSv1.3' })
    await once(socket, 'secureConnect')
    expect(socket.authorized).toBe(true)
    socket.destroy()
  }
  const byAddress = connect({ host: '127.0.0.1', port, ca: cert })
  await once(byAddress, 'secureConnect')
  expect(byAddress.authorized).toBe(true)
  byAddress.destroy()
  server.close()
})

test('OpenSSL finds a P-256 certificate for a server, good for ten years', async () => {
  await certificate(directory, 'mx.example.com')
  const file = join(directory, 'cert.pem')
  const { stdout } = await promisify(execFile)('openssl', ['x509', '-in', file, '-noout', '-text'])
  expect(stdout).toContain('NIST CURVE: P-256')
  expect(stdout).toContain('ecdsa-with-SHA256')
  expect(stdout).toContain('CA:FALSE')
  expect(stdout).toContain('TLS Web Server Authentication')
  expect(stdout).toContain('DNS:mx.example.com, DNS:localhost, IP Address:127.0.0.1')
  const years = (new X509Certificate(await readFile(file)).validToDate.getTime() - Date.now()) / (365.25 * 86_400_000)
  expect(years).toBeGreaterThan(9.9)
  await promisify(execFile)('openssl', ['verify', '-CAfile', file, file])
  await promisify(execFile)('openssl', ['pkey', '-in', join(directory, 'key.pem'), '-noout', '-check'])
})

test('is made once, and its key is for the owner alone', async () => {
  const made = await certificate(directory, 'mx.example.com')
  expect((await stat(join(directory, 'key.pem'))).mode & 0o777).toBe(0o600)
  await chmod(join(directory, 'key.pem'), 0o644)
  expect(await certificate(directory, 'mx.example.com')).toEqual(made)
  expect((await stat(join(directory, 'key.pem'))).mode & 0o777).toBe(0o600)
  expect((await readdir(directory)).toSorted()).toEqual(['cert.pem', 'key.pem'])
})

test('calls at the same moment get the same pair', async () => {
  const pairs = await Promise.all(Array.from({ length: 8 }, () => certificate(directory, 'mx.example.com')))
  expect(new Set(pairs.map(({ cert }) => cert)).size).toBe(1)
  expect(await readFile(join(directory, 'cert.pem'), 'utf8')).toBe(pairs[0]?.cert)
  expect(await readFile(join(directory, 'key.pem'), 'utf8')).toBe(pairs[0]?.key)
})

test.each([
  ['the key is lost', () => rm(join(directory, 'key.pem'))],
  ['the certificate is lost', () => rm(join(directory, 'cert.pem'))],
  ['the key is cut short', () => truncate(join(directory, 'key.pem'), 50)],
  ['the certificate is empty', () => truncate(join(directory, 'cert.pem'), 0)],
  [
    'the key is of another certificate',
    async () => writeFile(join(directory, 'key.pem'), (await certificate(join(directory, 'other'), 'mx.example.com')).key),
  ],
])('is made anew when %s', async (_, harm) => {
  const before = await certificate(directory, 'mx.example.com')
  await harm()
  const after = await certificate(directory, 'mx.example.com')
  expect(after.cert).not.toBe(before.cert)
  expect(await certificate(directory, 'mx.example.com')).toEqual(after)
  expect(await readFile(join(directory, 'key.pem'), 'utf8')).toBe(after.key)
})

test('is made anew when the box gets another name', async () => {
  await certificate(directory, 'pillarbox.test')
  const { cert } = await certificate(directory, 'mx.example.com')
  expect(new X509Certificate(cert).checkHost('mx.example.com')).toBe('mx.example.com')
})

test('a directory that cannot be made is an error, and does not stand in the way later', async () => {
  const file = join(directory, '..', 'file')
  await writeFile(file, '')
  await expect(certificate(join(file, 'tls'), 'mx.example.com')).rejects.toThrow(/ENOTDIR/)
  await rm(file)
  expect((await certificate(join(file, 'tls'), 'mx.example.com')).cert).toContain('BEGIN CERTIFICATE')
})
