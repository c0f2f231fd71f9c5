import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ambient } from './support/ambient.ts'

test('a thread has the heap that it is given, whatever the box itself was started with', () => {
  const program = join(import.meta.dirname, 'support/thread-heap.ts')
  const median = execFileSync(process.execPath, ['--max-semi-space-size=16', program], { env: ambient, encoding: 'utf8' })
  expect(Number(median)).toBeLessThanOrEqual(4 * 1024 * 1024)
})
