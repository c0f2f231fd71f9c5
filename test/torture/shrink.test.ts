import { expect, test } from 'vitest'
import { shrunk, shrunkList } from './shrink.ts'

test('what has a fault loses all that the fault does not need', async () => {
  const bytes = await shrunk(Buffer.from('some text with a fault in it'), async (less) => less.includes('fault'))
  expect(bytes.toString()).toBe('fault')
  const lines = ['EHLO a', 'MAIL FROM:<>', 'NOOP', 'RCPT TO:<b>', 'NOOP', 'DATA']
  const needed = ['MAIL FROM:<>', 'DATA']
  expect(await shrunkList(lines, async (less) => needed.every((line) => less.includes(line)))).toEqual(needed)
})
