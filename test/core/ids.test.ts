import { expect, test } from 'vitest'
import { isId, newId } from '../../src/core/ids.ts'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** The 128 bits of a TypeID, as its specification reads them. */
function bitsOf(id: string): bigint {
  let bits = 0n
  for (const character of id.slice(id.indexOf('_') + 1)) bits = bits * 32n + BigInt(alphabet.indexOf(character))
  return bits
}

test('an id is the prefix and a UUIDv7 in base 32, of the time at which it was made', () => {
  for (let round = 0; round < 1000; round += 1) {
    const before = Date.now()
    const id = newId('email')
    const after = Date.now()
    expect(id).toMatch(/^email_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
    expect(isId('email', id)).toBe(true)
    const bits = bitsOf(id)
    expect(bits < 1n << 128n).toBe(true)
    const time = Number(bits >> 80n)
    expect(time).toBeGreaterThanOrEqual(before)
    expect(time).toBeLessThanOrEqual(after)
    // RFC 9562 5.7: version 7, variant 10
    expect((bits >> 76n) & 15n).toBe(7n)
    expect((bits >> 62n) & 3n).toBe(2n)
  }
})

test('no two ids are alike, and each of their random bits is set in half of them', () => {
  const ids = Array.from({ length: 20_000 }, () => newId('evt'))
  expect(new Set(ids).size).toBe(ids.length)
  const all = ids.map(bitsOf)
  for (let bit = 0n; bit < 76n; bit += 1n) {
    if (bit === 62n || bit === 63n) continue
    const set = all.filter((bits) => (bits >> bit) & 1n).length
    // 7 standard deviations to each side
    expect(Math.abs(set - 10_000)).toBeLessThan(500)
  }
})
