import { expect, test } from 'vitest'
import { Fault } from '../../src/core/fault.ts'
import { readBase32 } from '../../src/totp/codes.ts'
import { readSetup } from '../../src/totp/setup.ts'
import { NewTotpEntry } from '../../src/totp/model.ts'

const secret = 'JBSWY3DPEHPK3PXP'
const bytes = Buffer.from('48656c6c6f21deadbeef', 'hex')

function read(input: Record<string, unknown>): ReturnType<typeof readSetup> {
  return readSetup(NewTotpEntry.parse(input))
}

function fault(input: Record<string, unknown>): { param: string | undefined; code: string | undefined; message: string } {
  try {
    read(input)
  } catch (error) {
    if (error instanceof Fault) return { param: error.param, code: error.code, message: error.message }
    throw error
  }
  throw new Error('was taken')
}

test.each([
  'JBSWY3DPEHPK3PXP',
  'jbswy3dpehpk3pxp',
  'JBSW Y3DP EHPK 3PXP',
  'jbsw-y3dp-ehpk-3pxp',
  ' JBSWY3DP\tEHPK3PXP\n',
  'JBSWY3DPEHPK3PXP======',
  'jbsw\u00a0y3dp ehpk 3pxp',
])('a secret may be spelled %j', (spelled) => {
  expect(read({ secret: spelled, service_name: 'X' }).secret.equals(bytes)).toBe(true)
})

test('base32 of every length comes back as it was, whatever the last character holds beyond it', () => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  for (let length = 1; length <= 70; length += 1) {
    const octets = Buffer.from(Array.from({ length }, (_, index) => (index * 151 + length * 37) & 255))
    let bits = Array.from(octets, (octet) => octet.toString(2).padStart(8, '0')).join('')
    const spare = (5 - (bits.length % 5)) % 5
    for (const rest of new Set(['0'.repeat(spare), '1'.repeat(spare)])) {
      bits = bits.slice(0, length * 8) + rest
      const text = bits.replace(/.{5}/g, (five) => alphabet[Number.parseInt(five, 2)]!)
      expect([length, readBase32(text)?.toString('hex')]).toEqual([length, octets.toString('hex')])
    }
  }
})

test.each([
  'A',
  '=',
  '- -',
  'JBSWY3DPEHPK3PX0',
  'JBSWY3DPEHPK3PX1',
  'JBSWY3DPEHPK3PX8',
  'JBSWY3DPEHPK3PXPA',
  'JBSWY3DPEHPK3PXPAAA',
  'JBSWY3DPEHPK3PXPAAAAAA',
  'JBSW=Y3DP',
  'JBSWY3DPEHPK3PXÖ',
  'ſbswy3dpehpk3pxp',
  '48656c6c6f21deadbeef!',
  `otpauth://totp/X?secret=${secret}`,
])('%j is no secret, and is not said again', (spelled) => {
  const told = fault({ secret: spelled, service_name: 'X' })
  expect(told).toMatchObject({ param: 'secret', code: 'invalid_value' })
  expect(told.message).not.toContain(spelled.length > 3 ? spelled : 'nothing')
})

test('a secret has at most 1024 octets', () => {
  const longest = 'A'.repeat(Math.ceil((1024 * 8) / 5))
  expect(read({ secret: longest, service_name: 'X' }).secret).toHaveLength(1024)
  expect(fault({ secret: 'A'.repeat(1640), service_name: 'X' })).toMatchObject({ param: 'secret' })
})

test('what is left out is as most services have it; what is given may be spelled in several ways', () => {
  expect(read({ secret, service_name: ' GitHub ' })).toEqual({
    secret: bytes,
    service_name: 'GitHub',
    account_name: null,
    algorithm: 'SHA1',
    digits: 6,
    period: 30,
  })
  for (const [spelled, algorithm] of [
    ['sha1', 'SHA1'],
    ['SHA-1', 'SHA1'],
    ['Sha-256', 'SHA256'],
    ['sha512', 'SHA512'],
  ]) {
    expect(read({ secret, service_name: 'X', algorithm: spelled }).algorithm).toBe(algorithm)
  }
  for (const algorithm of ['MD5', 'SHA', 'SHA3-256', 'SHA224', '', 'SHA--1', 1]) {
    expect(NewTotpEntry.safeParse({ secret, service_name: 'X', algorithm }).success).toBe(false)
  }
  for (const digits of [5, 9, 6.5, '6', null]) expect(NewTotpEntry.safeParse({ secret, digits }).success).toBe(false)
  for (const period of [14, 121, 0, -30, 30.5, '30']) expect(NewTotpEntry.safeParse({ secret, period }).success).toBe(false)
})

test('a uri says all that a service has to say', () => {
  const uri = `otpauth://totp/ACME%20Co:ada@example.com?secret=${secret}&issuer=ACME%20Co&algorithm=SHA256&digits=8&period=60`
  expect(read({ uri })).toEqual({
    secret: bytes,
    service_name: 'ACME Co',
    account_name: 'ada@example.com',
    algorithm: 'SHA256',
    digits: 8,
    period: 60,
  })
})

test.each([
  [`otpauth://totp/Example:ada?secret=${secret}`, 'Example', 'ada'],
  [`otpauth://totp/Example%3A%20ada?secret=${secret}`, 'Example', 'ada'],
  [`otpauth://totp/Example:ada:work?secret=${secret}`, 'Example', 'ada:work'],
  [`otpauth://totp/ada?secret=${secret}&issuer=Big+Bank`, 'Big Bank', 'ada'],
  [`otpauth://totp/Old:ada?secret=${secret}&issuer=New`, 'New', 'ada'],
  [`otpauth://totp/?secret=${secret}&issuer=Example`, 'Example', null],
  [`otpauth://totp/Example:ada?secret=${secret}&issuer=`, 'Example', 'ada'],
  [`otpauth://totp/Example:ada?secret=${secret}&issuer=+&algorithm=&counter=7`, 'Example', 'ada'],
  [`otpauth://totp/Example:?secret=${secret}`, 'Example', null],
  [`otpauth://totp/M%C3%BCller:%C3%A4da?secret=${secret}`, 'Müller', 'äda'],
  [`otpauth://totp/Müller Söhne:ada?secret=${secret}`, 'Müller Söhne', 'ada'],
  [
    `OTPAUTH://TOTP/Example:ada?SECRET=${secret.toLowerCase()}&Algorithm=sha1&image=https%3A%2F%2Fx.test%2Fa.png`,
    'Example',
    'ada',
  ],
  [` otpauth://totp/Example:ada?secret=jbsw%20y3dp%20ehpk%203pxp%3D%3D&color=red\n`, 'Example', 'ada'],
])('%s is read', (uri, service_name, account_name) => {
  expect(read({ uri })).toMatchObject({ secret: bytes, service_name, account_name, algorithm: 'SHA1', digits: 6, period: 30 })
})

test.each([
  ['https://example.com/', /otpauth:\/\//],
  ['otpauth:', /otpauth:\/\/totp/],
  ['not a uri', /otpauth:\/\//],
  [`otpauth://hotp/X:a?secret=${secret}&counter=1`, /hotp/],
  [`otpauth://motp/X:a?secret=${secret}`, /otpauth:\/\/totp/],
  [`otpauth-migration://offline?data=CjEKCkhlbGxvId6tvu8`, /otpauth:\/\//],
  ['otpauth://totp/X:a', /secret/],
  ['otpauth://totp/X:a?secret=', /base32/],
  ['otpauth://totp/X:a?secret=0189', /base32/],
  [`otpauth://totp/X:a?secret=${secret}&secret=${secret}`, /twice/],
  [`otpauth://totp/X:a?secret=${secret}&Secret=AAAA`, /twice/],
  [`otpauth://totp/X:%ff?secret=${secret}`, /UTF-8/],
  [`otpauth://totp/X:a?secret=${secret}&algorithm=MD5`, /algorithm/],
  [`otpauth://totp/X:a?secret=${secret}&digits=5`, /digits/],
  [`otpauth://totp/X:a?secret=${secret}&digits=six`, /digits/],
  [`otpauth://totp/X:a?secret=${secret}&period=0`, /period/],
  [`otpauth://totp/X:a?secret=${secret}&period=30.0`, /period/],
  [`otpauth://totp/X%0AY:a?secret=${secret}`, /issuer/],
  [`otpauth://totp/X:a%00b?secret=${secret}`, /account/],
])('%s is refused', (uri, why) => {
  const told = fault({ uri, service_name: uri.includes('X') ? undefined : 'X' })
  expect(told).toMatchObject({ param: 'uri', code: 'invalid_value' })
  expect(told.message).toMatch(why)
  expect(told.message).not.toContain(secret)
})

test('what the caller says beside a uri may name it otherwise, and contradict nothing', () => {
  const uri = `otpauth://totp/Example:ada?secret=${secret}&issuer=Example&digits=8`
  expect(read({ uri, secret: 'jbsw y3dp ehpk 3pxp', digits: 8 })).toMatchObject({ secret: bytes, digits: 8 })
  expect(read({ uri, service_name: 'Mine', account_name: 'other', period: 60, algorithm: 'sha512' })).toMatchObject({
    service_name: 'Mine',
    account_name: 'other',
    period: 60,
    algorithm: 'SHA512',
  })
  const whole = `${uri}&period=30&algorithm=SHA1`
  expect(fault({ uri: whole, secret: 'AAAAAAAA' })).toMatchObject({ param: 'secret', code: 'contradiction' })
  expect(fault({ uri: whole, digits: 6 })).toMatchObject({ param: 'digits', code: 'contradiction' })
  expect(fault({ uri: whole, period: 60 })).toMatchObject({ param: 'period', code: 'contradiction' })
  expect(fault({ uri: whole, algorithm: 'SHA256' })).toMatchObject({ param: 'algorithm', code: 'contradiction' })
})

test('a secret and a name are needed, from wherever', () => {
  expect(fault({ service_name: 'X' })).toMatchObject({ param: 'secret', code: 'missing' })
  expect(fault({})).toMatchObject({ param: 'secret', code: 'missing' })
  expect(fault({ secret })).toMatchObject({ param: 'service_name', code: 'missing' })
  expect(fault({ uri: `otpauth://totp/ada?secret=${secret}` })).toMatchObject({ param: 'service_name', code: 'missing' })
})
