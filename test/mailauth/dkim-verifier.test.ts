import { createHash, generateKeyPairSync } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { expect, test } from 'vitest'
import { type Resolver, type Verified, verifySignatures } from '../../src/mailauth/dkim-verifier.ts'
import { pick, type Random, randomFrom } from '../support/random.ts'
import { rsaKey, sign } from '../support/signed-mail.ts'

// FUZZ_ROUNDS=20000 for a long run
const rounds = Number(process.env['FUZZ_ROUNDS'] ?? 1500)

const key = rsaKey(1024)
const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'der', type: 'spki' })
const records: Record<string, string> = {
  'k._domainkey.a.test': key.record,
  'bad._domainkey.a.test': 'v=DKIM1; p=AAAA',
  'gone._domainkey.a.test': 'v=DKIM1; p=',
  'curve._domainkey.a.test': `v=DKIM1; k=rsa; p=${curve.toString('base64')}`,
}
const resolver = ((name: string) =>
  name in records
    ? Promise.resolve([[records[name]]])
    : Promise.reject(Object.assign(new Error(name), { code: 'ENOTFOUND' }))) as Resolver
const options = { strict: true, minBitLength: 1024, resolver, sender: '<>' }

const texts = [
  'a',
  ' ',
  '  ',
  '\t',
  '\r\n',
  '\r\n\r\n',
  ' \r\n',
  '\r',
  '\n',
  'word word',
  '\0',
  'é',
  ' \t \r\n',
  '\r\r\n',
  '--B\r\n',
]
const canonicalizations = [
  'relaxed/relaxed',
  'simple/simple',
  'relaxed/simple',
  'simple/relaxed',
  'relaxed',
  '',
  'Relaxed/Relaxed',
  'x/y',
]
const algorithms = ['rsa-sha256', 'rsa-sha256', 'rsa-sha256', 'rsa-sha1', 'ed25519-sha256', 'x']

/** The hash of a body by RFC 6376 3.4, line by line. */
function bodyHash(body: string, canonicalization: string): string {
  const isRelaxed = /\/relaxed$/i.test(canonicalization)
  const lines = body.split('\r\n').map((line) => (isRelaxed ? line.replace(/[ \t]+/g, ' ').replace(/ $/, '') : line))
  const kept = lines.join('\r\n').replace(/(\r\n)+$/, '')
  return createHash('sha256')
    .update(kept === '' && isRelaxed ? '' : `${kept}\r\n`, 'latin1')
    .digest('base64')
}

function message(random: Random): { head: string; body: string } {
  const body = Buffer.from(Array.from({ length: random(12) }, () => pick(texts, random)).join('')).toString('latin1')
  const field = (kind: string): string => {
    const canonicalization = pick(canonicalizations, random)
    return [
      `${kind} a=${pick(algorithms, random)}; c=${canonicalization}; d=a.test`,
      `s=${pick(['k', 'bad', 'gone', 'none', 'curve'], random)}`,
      `h=${pick(['from', 'from:subject', 'subject'], random)}`,
      ...(random(6) === 0 ? [`l=${random(60)}`] : []),
      ...(random(8) === 0 ? ['x=1000'] : []),
      `bh=${random(4) === 0 ? 'AAAA' : bodyHash(body, canonicalization)}; b=AAAA`,
    ].join('; ')
  }
  const arc = `ARC-Seal: i=1; a=rsa-sha256; cv=none; d=a.test; s=k; b=AAAA\r\nARC-Message-Signature: ${field('i=1;')}\r\nARC-Authentication-Results: i=1; a.test; dmarc=pass\r\n`
  const signatures = Array.from({ length: random(3) }, () => `DKIM-Signature: ${field('v=1;')}\r\n`).join('')
  const structure = random(6) === 0 ? 'Content-Type: multipart/mixed; boundary=B\r\n' : ''
  return { head: `${random(4) === 0 ? arc : ''}${signatures}From: x@a.test\r\nSubject: y\r\n${structure}`, body }
}

function signature(row: Verified['results'][number]): unknown {
  const { status, signingDomain, selector, algo, format, signTime, signingHeaders, canonBodyLengthLimited } = row
  const lines = signingHeaders?.headers
  return { status, signingDomain, selector, algo, format, signTime, canonBodyLengthLimited, found: row.bodyHash, lines }
}

/** What the checks read of the results. */
function seen({ headers, headerFrom, results, arc }: Verified): unknown {
  const newest = arc?.lastEntry ? arc.lastEntry.messageSignature : undefined
  const names = headers?.parsed.map(({ key: name, line }) => [name, line.toString('latin1')])
  return { names, headerFrom, results: results.map(signature), arc: newest && signature(newest) }
}

test('signatures are verified as by the library', async () => {
  const random = randomFrom(Number(process.env['FUZZ_SEED'] ?? 20261125))
  let valid = 0
  for (let round = 0; round < rounds; round += 1) {
    const { head, body } = message(random)
    const text = `${head}\r\n${body}`
    const raw = random(4) === 0 ? await sign(text, 'a.test', 'k', key) : Buffer.from(text, 'latin1')
    const [own, other] = [await verifySignatures(raw, options), await dkimVerify(raw, options)]
    expect({ raw: raw.toString('latin1'), seen: seen(own) }).toEqual({ raw: raw.toString('latin1'), seen: seen(other) })
    if (own.results.some(({ status }) => status.result === 'pass')) valid += 1
  }
  expect(valid).toBeGreaterThan(rounds / 10)
})

test('a long body with blanks everywhere is hashed in pieces', async () => {
  const body = 'two  blanks\tand one at the end \r\n'.repeat(100_000)
  const raw = await sign(`From: x@a.test\r\nSubject: y\r\n\r\n${body}`, 'a.test', 'k', key)
  expect((await verifySignatures(raw, options)).results[0]!.status.result).toBe('pass')
})
