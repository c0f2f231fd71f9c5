import { expect, test } from 'vitest'
import { shrunk } from './shrink.ts'

test('what has a fault loses all that the fault does not need', async () => {
  const bytes = await shrunk(
    Buffer.from('some text with a fault in it'),
    (a, b) => Buffer.concat([a, b]),
    async (less) => less.includes('fault'),
  )
  expect(bytes.toString()).toBe('fault')
  const lines = ['EHLO a', 'MAIL FROM:<>', 'NOOP', 'RCPT TO:<b>', 'NOOP', 'DATA']
  const needed = ['MAIL FROM:<>', 'DATA']
  expect(
    await shrunk(
      lines,
      (a, b) => [...a, ...b],
      async (less) => needed.every((line) => less.includes(line)),
    ),
  ).toEqual(needed)
})
