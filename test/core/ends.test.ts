import fc from 'fast-check'
import { expect, test } from 'vitest'
import { withoutEnd, withoutEnds } from '../../src/core/ends.ts'

const text = fc.string({ unit: fc.constantFrom('a', '-', '.', ' ', '\t', 'é', '😀') })

test('what stands at an end goes, and nothing else', () => {
  fc.assert(
    fc.property(text, (given) => {
      expect(withoutEnd(given, '-.')).toBe(given.replace(/[-.]+$/, ''))
      expect(withoutEnds(given, ' \t')).toBe(given.replaceAll(/^[ \t]+|[ \t]+$/g, ''))
    }),
  )
})

test('ten million of them before something else are looked at once', () => {
  const long = `a${'-'.repeat(10_000_000)}b`
  expect(withoutEnd(long, '-')).toBe(long)
  expect(withoutEnds(long, '-')).toBe(long)
})
