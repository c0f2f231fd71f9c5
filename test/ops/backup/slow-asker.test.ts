import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { boxProcess } from '../../support/process.ts'
import { bigBox } from './big-box.ts'

test('a backup that is made while nobody listens is told of all the same', async () => {
  const box = await bigBox(64)
  const target = join(box.directory, 'shelf')
  mkdirSync(target)
  const file = join(target, 'box.tar')
  const running = boxProcess(box.env, ['backup', file], box.directory)
  await vi.waitFor(() => expect(existsSync(`${file}.part.db`)).toBe(true), { timeout: 100_000, interval: 2 })
  running.child.kill('SIGSTOP')
  await vi.waitFor(() => expect(readdirSync(target)).toEqual(['box.tar']), { timeout: 100_000, interval: 20 })
  running.child.kill('SIGCONT')
  expect([await running.ended, running.errors()]).toEqual([0, expect.any(String)])
})
