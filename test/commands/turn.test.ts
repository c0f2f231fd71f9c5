import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { child } from '../support/child.ts'
import { folder } from '../support/folder.ts'
import { boxProcess, testBox } from '../support/process.ts'

test('a box that is started while a command has its files waits for their turn, and then comes up', async () => {
  const data = join(folder(), 'data')
  mkdirSync(data, { mode: 0o700 })
  const command = child('store/children/hold-lock.ts', [data])
  await command.until(1)
  const box = boxProcess({ ...testBox, PILLARBOX_DATA_DIR: data })
  const waited = await Promise.race([box.said('another process has locked the files of the box: waiting'), box.ended])
  expect(waited).toMatchObject({ level: 'warn' })
  await command.kill()
  await box.said('started')
  expect(await box.end('SIGTERM')).toBe(0)
})
