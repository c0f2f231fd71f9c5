import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folder } from '../support/folder.ts'
import { boxProcess, testBox } from '../support/process.ts'

test('ps, ss and top list a box by its name, its threads by theirs, and its command line as it was given', async () => {
  const box = boxProcess({ ...testBox, PILLARBOX_DATA_DIR: join(folder(), 'data') })
  await box.said('started')
  const seen = `/proc/${box.child.pid}`
  expect(readFileSync(`${seen}/comm`, 'utf8')).toBe('pillarbox\n')
  expect(readFileSync(`${seen}/cmdline`, 'utf8')).toMatch(/main\.ts\0serve\0$/)
  const threads = readdirSync(`${seen}/task`).map((id) => readFileSync(`${seen}/task/${id}/comm`, 'utf8').trim())
  expect(threads).not.toContain('MainThread')
})
