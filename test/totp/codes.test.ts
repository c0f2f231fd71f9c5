import { expect, test } from 'vitest'
import { codeAt, timeLeft } from '../../src/totp/codes.ts'
import { vectors } from './vectors.ts'

test.each(vectors)('RFC 6238: $algorithm at $second', ({ algorithm, secret, second, code }) => {
  expect(codeAt(secret, { algorithm, digits: 8, period: 30 }, second * 1000)).toBe(code)
  expect(codeAt(secret, { algorithm, digits: 7, period: 30 }, second * 1000)).toBe(code.slice(1))
  expect(codeAt(secret, { algorithm, digits: 6, period: 30 }, second * 1000)).toBe(code.slice(2))
})

test('a code holds to the last millisecond of its period, and not beyond', () => {
  const secret = Buffer.from('12345678901234567890')
  for (const period of [15, 30, 47, 60, 119, 120]) {
    const recipe = { algorithm: 'SHA1', digits: 8, period } as const
    const begin = 37_037_000 * period * 1000
    const code = codeAt(secret, recipe, begin)
    expect(codeAt(secret, recipe, begin + period * 1000 - 1)).toBe(code)
    expect(codeAt(secret, recipe, begin + period * 1000)).not.toBe(code)
    expect(codeAt(secret, recipe, begin - 1)).not.toBe(code)
    expect([begin, begin + 1, begin + period * 1000 - 1].map((now) => timeLeft(period, now))).toEqual([
      period * 1000,
      period * 1000 - 1,
      1,
    ])
  }
})
