import { expect, test } from 'vitest'
import { release } from '../../src/core/memory.ts'

test('a buffer that is released leaves others of its memory alone, were it all of it but a byte', () => {
  const memory = Buffer.alloc(64 * 1024, 'a')
  release(memory.subarray(1))
  expect(memory.length).toBe(64 * 1024)
  release(memory)
  expect(memory.length).toBe(0)
})
