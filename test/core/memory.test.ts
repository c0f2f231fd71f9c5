import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { largeProcess, release, relieve } from '../../src/core/memory.ts'

test('a buffer that is released leaves others of its memory alone, were it all of it but a byte', () => {
  const memory = Buffer.alloc(64 * 1024, 'a')
  release(memory.subarray(1))
  expect(memory.length).toBe(64 * 1024)
  release(memory)
  expect(memory.length).toBe(0)
})

test('what is dropped after the last large work is collected a little later', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  const { bytes } = largeProcess
  onTestFinished(() => {
    largeProcess.bytes = bytes
    vi.useRealTimers()
  })
  largeProcess.bytes = 0
  const before = process.memoryUsage().arrayBuffers
  const kept = [Buffer.alloc(40 * 1024 * 1024, 'a')]
  relieve()
  expect(process.memoryUsage().arrayBuffers).toBeGreaterThan(before + 30 * 1024 * 1024)
  kept.length = 0
  // of what was kept on the stack
  await turn()
  await vi.advanceTimersByTimeAsync(2000)
  expect(process.memoryUsage().arrayBuffers).toBeLessThan(before + 30 * 1024 * 1024)
})
