import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readCookie } from '../../src/http/cookie.ts'

const origin = 'https://box.test'
const name = '__Host-pillarbox'

test.each([
  [`${name}=abc`, 'abc'],
  [`theme=dark; ${name}=abc`, 'abc'],
  [` \t${name}=abc \t; theme=dark`, 'abc'],
  [`theme=dark;\u00a0${name}=abc`, undefined],
  [`${name}=abc; ${name}=def`, undefined],
  [`${name}=`, undefined],
  [`${name}=a b`, undefined],
  ['', undefined],
])('of the cookies %j the session is %s', (header, session) => expect(readCookie(header, origin)).toBe(session))

test('spaces and tabs go from the ends of a cookie, and nothing else', () => {
  const piece = fc.constantFrom(' ', '\t', ';', 'a', '\u00a0', '\v', `${name}=abc`)
  fc.assert(
    fc.property(fc.string({ unit: piece }), (header) => {
      const found = header
        .split(';')
        .map((pair) => pair.replaceAll(/^[ \t]+|[ \t]+$/g, ''))
        .filter((pair) => pair.startsWith(`${name}=`))
      const value = found.length === 1 ? found[0]!.slice(name.length + 1) : ''
      expect(readCookie(header, origin)).toBe(/^[\w-]{1,200}$/.test(value) ? value : undefined)
    }),
  )
})

test('a cookie of ten million spaces is read once', () => {
  expect(readCookie(`a${' '.repeat(10_000_000)}b; ${name}=abc`, origin)).toBe('abc')
})
