import { appendFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { Journal } from '../../src/install/journal.ts'
import { folder } from '../support/folder.ts'

afterEach(() => vi.unstubAllEnvs())

function begun(directory: string): Journal {
  const journal = new Journal(join(directory, 'init.log'), () => undefined)
  journal.begin()
  journal.put(join(directory, 'pillarbox.yaml'), 'hostname: mx.agents.test\n', 0o600)
  return journal
}

test('what was made goes also when there is no room for a copy of the log', () => {
  const directory = folder()
  const journal = begun(directory)
  vi.stubEnv('TMPDIR', join(directory, 'nowhere'))
  expect(journal.undo()).toBe('its log could not be kept')
  expect(readdirSync(directory)).toEqual([])
})

test('a line that a full disk cut short names nothing', () => {
  const directory = folder()
  const other = join(directory, 'box')
  mkdirSync(other)
  writeFileSync(join(other, 'letter'), 'mine')
  const journal = begun(directory)
  // of `made filled …/box-keys`
  appendFileSync(journal.file, `2026-11-20T10:00:00.000Z made filled ${other}`)
  journal.undo()
  expect(existsSync(join(other, 'letter'))).toBe(true)
  expect(readdirSync(directory)).toEqual(['box'])
})
