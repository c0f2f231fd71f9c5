import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appliance } from '../../support/appliance.ts'
import { pillarbox } from './command.ts'

test('what a killed verify had unpacked is removed by a later one, and what another unpacks now is not', async () => {
  const box = await appliance()
  const backupDirectory = join(box.directory, 'shelf')
  for (const name of ['pillarbox-verify-killed', 'pillarbox-verify-going'])
    mkdirSync(join(backupDirectory, name), { recursive: true })
  writeFileSync(join(backupDirectory, 'pillarbox-verify-killed', 'pillarbox.db'), 'mail')
  const past = Date.now() / 1000 - 2 * 86_400
  utimesSync(join(backupDirectory, 'pillarbox-verify-killed'), past, past)
  const file = join(backupDirectory, 'box.tar')
  expect(await pillarbox(box, 'backup', file)).toMatchObject({ status: 0 })
  expect(await pillarbox(box, 'verify', file)).toMatchObject({ status: 0 })
  expect(readdirSync(backupDirectory).toSorted()).toEqual(['box.tar', 'pillarbox-verify-going'])
})
