import fc from 'fast-check'
import { expect, test } from 'vitest'
import { trimBothEnds, trimEnd } from '../../src/core/text.ts'

const text = fc.string({ unit: fc.constantFrom('a', '-', '.', ' ', '\t', 'é', '😀') })

test('what stands at an end goes, and nothing else', () => {
  fc.assert(
    fc.property(text, (given) => {
      expect(trimEnd(given, '-.')).toBe(given.replace(/[-.]+$/, ''))
      expect(trimBothEnds(given, ' \t')).toBe(given.replaceAll(/^[ \t]+|[ \t]+$/g, ''))
    }),
  )
})

test('ten million of them before something else are looked at once', () => {
  const long = `a${'-'.repeat(10_000_000)}b`
  expect(trimEnd(long, '-')).toBe(long)
  expect(trimBothEnds(long, '-')).toBe(long)
})
