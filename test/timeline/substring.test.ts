import { expect, test } from 'vitest'
import { Substring } from '../../src/timeline/substring.ts'

/** All texts of so many of the letters a and b. */
const texts = (length: number): string[] =>
  Array.from({ length: 2 ** length }, (_, number) =>
    number.toString(2).padStart(length, '0').replaceAll('0', 'a').replaceAll('1', 'b'),
  )

test('a short or a long text is found wherever String.includes finds it, and nowhere else', () => {
  for (const length of [1, 20, 40, 400]) {
    for (const part of texts(5)) {
      const wanted = part.repeat(Math.ceil(length / 5)).slice(0, length)
      const substring = new Substring(wanted)
      for (const other of texts(4)) {
        const almost = `${other}${wanted.slice(0, -1)}`
        for (const text of [almost, `${almost}${other}`, `${almost}${wanted}`, `${other.repeat(200)}${wanted}x`, '']) {
          expect(substring.isIn(text)).toBe(text.includes(wanted))
        }
      }
    }
  }
})
