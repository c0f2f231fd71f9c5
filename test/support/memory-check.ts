import { afterAll, vi } from 'vitest'
import { largeProcess } from '../../src/core/memory.ts'
import { memoryPool } from '../../src/core/memory-pool.ts'

// with vitest, the threads that wait, and what earlier files left, a worker is always larger than a box, which would collect garbage all the time
largeProcess.bytes = 1024 * 1024 * 1024

const before = memoryPool.bytes

function checkMemory(): void {
  const held = memoryPool.bytes - before
  if (held > 0) throw new Error(`${held} bytes are still held for clients of this file`)
}

// A worker runs many files: what one of them leaves held fails tests of others.
afterAll(async () => await vi.waitFor(checkMemory, { timeout: 20_000 }))
