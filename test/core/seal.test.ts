import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { mac, masterKey, sameBytes, Seal } from '../../src/core/seal/seal.ts'
import { folder } from '../support/folder.ts'

describe('the master key', () => {
  it('is made once, for its owner only', () => {
    const directory = join(folder(), 'keys')
    const key = masterKey(directory)
    expect(key).toHaveLength(32)
    expect(statSync(join(directory, 'master.key')).mode & 0o777).toBe(0o600)
    expect(readdirSync(directory)).toEqual(['master.key'])
    expect(masterKey(directory, true).equals(key)).toBe(true)
    expect(masterKey(folder()).equals(key)).toBe(false)
  })

  it('is not made anew when there must be one', () => {
    const directory = folder()
    expect(() => masterKey(directory, true)).toThrow(/master\.key is missing, .* Restore it from a backup/)
    expect(existsSync(join(directory, 'master.key'))).toBe(false)
  })

  it.each([0o640, 0o604, 0o660, 0o644])('is refused when others may read or write it (mode %o)', (mode) => {
    const directory = folder()
    masterKey(directory)
    chmodSync(join(directory, 'master.key'), mode)
    expect(() => masterKey(directory)).toThrow(`(mode ${mode.toString(8)}); set it to 0600`)
  })

  it('may be a link to a file that only its owner can read', () => {
    const directory = folder()
    const elsewhere = join(folder(), 'secret')
    const key = masterKey(directory)
    renameSync(join(directory, 'master.key'), elsewhere)
    symlinkSync(elsewhere, join(directory, 'master.key'))
    expect(masterKey(directory).equals(key)).toBe(true)
  })

  const good = Buffer.alloc(32, 7).toString('base64')
  it.each([
    ['nothing', ''],
    ['a short key', good.slice(0, 20)],
    ['a long key', Buffer.alloc(33, 7).toString('base64')],
    ['hexadecimal', Buffer.alloc(32, 7).toString('hex')],
    ['a damaged letter', `!${good.slice(1)}`],
    ['letters around it', `${good}%%%`],
    ['octets', Buffer.alloc(32, 200).toString('latin1')],
    ['a whole book', 'x'.repeat(100_000)],
  ])('is refused, and left alone, when the file holds %s', (_name, text) => {
    const file = join(folder(), 'master.key')
    writeFileSync(file, text, { mode: 0o600 })
    expect(() => masterKey(join(file, '..'))).toThrow(
      /master\.key is not a master key: it must contain 32 bytes in base64\. Restore/,
    )
    expect(readFileSync(file, 'utf8')).toBe(text)
  })

  it('is refused when it is a directory', () => {
    const directory = folder()
    mkdirSync(join(directory, 'master.key'), { mode: 0o700 })
    expect(() => masterKey(directory)).toThrow('is not a master key')
  })
})

describe('a sealed value', () => {
  const seal = new Seal(Buffer.alloc(32, 1))
  const refused = /unable to authenticate|truncated/
  const secret = Buffer.from('JBSWY3DPEHPK3PXP')

  it('opens in its own context, and is another each time', () => {
    const sealed = seal.seal(secret, 'totp 1')
    expect(seal.open(sealed, 'totp 1').equals(secret)).toBe(true)
    expect(sealed.includes(secret)).toBe(false)
    expect(seal.seal(secret, 'totp 1').equals(sealed)).toBe(false)
    expect(seal.open(seal.seal(new Uint8Array(0), ''), '')).toHaveLength(0)
  })

  it('does not open in another context or under another master key', () => {
    const sealed = seal.seal(secret, 'totp 1')
    expect(() => seal.open(sealed, 'totp 2')).toThrow(refused)
    expect(() => new Seal(Buffer.alloc(32, 2)).open(sealed, 'totp 1')).toThrow(refused)
  })

  it('does not open with any octet changed, or cut off anywhere', () => {
    const sealed = seal.seal(secret, 'totp 1')
    for (let place = 0; place < sealed.length; place++) {
      const changed = Buffer.from(sealed)
      changed[place]! ^= 1
      expect(() => seal.open(changed, 'totp 1')).toThrow(refused)
      expect(() => seal.open(sealed.subarray(0, place), 'totp 1')).toThrow(refused)
      expect(() => seal.open(sealed.subarray(sealed.length - place), 'totp 1')).toThrow(refused)
    }
  })

  it('has keys apart for each purpose, always the same', () => {
    expect(seal.key('cursors').equals(seal.key('signed urls'))).toBe(false)
    expect(seal.key('cursors').equals(new Seal(Buffer.alloc(32, 1)).key('cursors'))).toBe(true)
  })
})

it('compares codes of any length', () => {
  const code = mac(Buffer.alloc(32), 'text')
  expect(sameBytes(code, mac(Buffer.alloc(32), 'text'))).toBe(true)
  expect(sameBytes(code, mac(Buffer.alloc(32), 'Text'))).toBe(false)
  expect(sameBytes(code, code.subarray(1))).toBe(false)
})
