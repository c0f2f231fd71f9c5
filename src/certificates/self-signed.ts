import { X509Certificate, createPrivateKey } from 'node:crypto'
import { chmod, mkdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { day } from '../core/clock.ts'
import { type Pair, write } from './pair.ts'

const underWay = new Map<string, Promise<Pair>>()

/**
 * The self-signed certificate of a host name, stored as `cert.pem` and `key.pem` (0600) in the directory. It is created when it is missing,
 * incomplete, expired or for another host. EC P-256, ten years.
 */
export function certificate(directory: string, hostname: string): Promise<Pair> {
  const place = resolve(directory)
  // One after the other, so that concurrent callers get the same pair and the files on disk belong together.
  const before = underWay.get(place) ?? Promise.resolve()
  const now = before.then(
    () => readOrMake(place, hostname),
    () => readOrMake(place, hostname),
  )
  underWay.set(place, now)
  const forget = () => {
    if (underWay.get(place) === now) underWay.delete(place)
  }
  now.then(forget, forget)
  return now
}

async function readOrMake(directory: string, hostname: string): Promise<Pair> {
  const kept = await readPair(directory)
  if (kept && fits(kept, hostname)) {
    await chmod(join(directory, 'key.pem'), 0o600)
    return kept
  }
  const made = await make(hostname)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await write(join(directory, 'key.pem'), made.key, 0o600)
  await write(join(directory, 'cert.pem'), made.cert, 0o644)
  return made
}

async function readPair(directory: string): Promise<Pair | undefined> {
  try {
    const [cert, key] = await Promise.all([
      readFile(join(directory, 'cert.pem'), 'utf8'),
      readFile(join(directory, 'key.pem'), 'utf8'),
    ])
    return { cert, key }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function fits({ cert, key }: Pair, hostname: string): boolean {
  try {
    const kept = new X509Certificate(cert)
    const lasts = kept.validToDate.getTime() > Date.now() + 30 * day
    return lasts && kept.checkPrivateKey(createPrivateKey(key)) && kept.checkHost(hostname) !== undefined
  } catch {
    return false
  }
}

async function make(hostname: string): Promise<Pair> {
  // Loaded on first use: most starts find the pair on disk.
  const { generate } = await import('selfsigned')
  const names = [...new Set([hostname, 'localhost'])]
  const made = await generate([{ name: 'commonName', value: hostname.length <= 64 ? hostname : 'pillarbox' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    // A day back, for peers whose clock is slow.
    notBeforeDate: new Date(Date.now() - day),
    notAfterDate: new Date(Date.now() + 3652 * day),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [...names.map((value) => ({ type: 2 as const, value })), { type: 7, ip: '127.0.0.1' }, { type: 7, ip: '::1' }],
      },
    ],
  })
  return { cert: made.cert, key: made.private }
}
