import { chownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { pillarbox } from '../ops/backup/command.ts'
import { type Appliance, appliance } from '../support/appliance.ts'

const nobody = 65_534

test('what needs a stopped box answers programs too, finds it by --data, and as root leaves nothing of root’s behind', async () => {
  const box = await appliance()
  await box.app.stop()
  const data = box.env['PILLARBOX_DATA_DIR']!
  const keys = `${data}-keys`
  const ours = (): string[] =>
    [data, keys].flatMap((folder) => [folder, ...readdirSync(folder, { encoding: 'utf8' }).map((name) => join(folder, name))])
  const owner = process.getuid!() === 0 ? nobody : process.getuid!()
  if (owner === nobody) {
    for (const path of [dirname(data), ...ours(), join(data, 'tls')]) chownSync(path, nobody, nobody)
    for (const name of readdirSync(join(data, 'tls'))) chownSync(join(data, 'tls', name), nobody, nobody)
  }
  const elsewhere = { directory: '/', env: { PILLARBOX_MIN_FREE: '0', ...databaseOf(box) } }
  const rotated = await pillarbox(elsewhere, 'key', 'rotate-master', '--data', data, '--json')
  expect([rotated.status, rotated.errors]).toEqual([0, ''])
  expect(JSON.parse(rotated.output)).toEqual({ values: expect.any(Number), former: join(keys, 'master.key.former') })
  const counted = await pillarbox(elsewhere, 'reputation', 'recount', '--data', data, '--json')
  expect([counted.status, JSON.parse(counted.output)]).toEqual([0, { identities: 0, corrected: 0 }])
  const backupDirectory = join(dirname(data), 'shelf')
  mkdirSync(backupDirectory, { mode: 0o700 })
  chownSync(backupDirectory, owner, -1)
  const auto = { ...elsewhere, env: { ...elsewhere.env, PILLARBOX_BACKUP__DIRECTORY: backupDirectory } }
  // a server makes its own
  const onServer = box.env['PILLARBOX_DATABASE__URL'] !== undefined
  expect(await pillarbox(auto, 'backup', '--auto', '--data', data)).toMatchObject({ status: onServer ? 1 : 0 })
  expect(readdirSync(backupDirectory).map((name) => statSync(join(backupDirectory, name)).uid)).toEqual(onServer ? [] : [owner])
  expect(ours().filter((path) => statSync(path).uid !== owner)).toEqual([])
})

test('config check answers programs too', async () => {
  const env = { PILLARBOX_DATA_DIR: '/nowhere' }
  const good = await pillarbox({ directory: '/', env }, 'config', 'check', '--json')
  expect([good.status, JSON.parse(good.output)]).toEqual([0, { good: true }])
  const bad = await pillarbox({ directory: '/', env: { ...env, PILLARBOX_HTTP__LISTEN: 'x' } }, 'config', 'check', '--json')
  expect([bad.status, bad.output]).toEqual([78, ''])
  expect(JSON.parse(bad.errors)).toEqual({ error: { message: expect.stringContaining('PILLARBOX_HTTP__LISTEN') } })
})

function databaseOf({ env: { PILLARBOX_DATABASE__URL } }: Appliance): Record<string, string> {
  return PILLARBOX_DATABASE__URL === undefined ? {} : { PILLARBOX_DATABASE__URL }
}
