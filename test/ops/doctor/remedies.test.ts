import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { restoring } from '../../../src/ops/doctor/remedies.ts'
import { folder } from '../../support/folder.ts'
import { succeed } from '../../support/program.ts'

test('a backup is restored beside the settings and the passphrase that they name, where init put them into the data', async () => {
  const directory = folder()
  const data = join(directory, 'data')
  mkdirSync(data)
  for (const name of ['backup.passphrase', 'pillarbox.db', 'pillarbox.yaml']) writeFileSync(join(data, name), name)
  const [, command] = /^(mv .*)$/m.exec(restoring(data))!
  const said = await succeed('sh', ['-ec', `pillarbox() { echo "$@"; ls '${data}'; }\n${command!}`])
  const words = `restore FILE --data ${data} --config ${join(data, 'pillarbox.yaml')}`
  expect(said.toString()).toBe(`${words}\nbackup.passphrase\npillarbox.yaml\n`)
  expect(readdirSync(`${data}.damaged`)).toEqual(['backup.passphrase', 'pillarbox.db', 'pillarbox.yaml'])
})
