import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { collect, largeProcess, release, relieve } from '../../src/core/memory.ts'

test('a buffer that is released leaves others of its memory alone, were it all of it but a byte', () => {
  const memory = Buffer.alloc(64 * 1024, 'a')
  release(memory.subarray(1))
  expect(memory.length).toBe(64 * 1024)
  release(memory)
  expect(memory.length).toBe(0)
})

function held(): number {
  return process.memoryUsage().arrayBuffers
}

test('what is dropped after the last large work is collected a little later', async () => {
  const { bytes } = largeProcess
  onTestFinished(() => void (largeProcess.bytes = bytes))
  largeProcess.bytes = 0
  // another test of this process may have collected just now
  await sleep(300)
  collect(true)
  const before = held()
  const kept = [Buffer.alloc(40 * 1024 * 1024, 'a')]
  relieve()
  expect(held()).toBeGreaterThan(before + 30 * 1024 * 1024)
  kept.length = 0
  await expect.poll(held).toBeLessThan(before + 30 * 1024 * 1024)
})
