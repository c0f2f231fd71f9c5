import { chmodSync, chownSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { isOnServer } from '../support/open-store.ts'
import { databaseOf, fill, keysOf } from './sealed.ts'

test('a box that had a key is not started without it, and no other is made in its place', async () => {
  const box = await appliance()
  const kept = await fill(box)
  await box.app.stop()
  const file = join(keysOf(box), 'master.key')
  const elsewhere = join(box.directory, 'elsewhere')
  // a server has none
  const octets = (): Buffer => (isOnServer(databaseOf(box)) ? Buffer.alloc(0) : readFileSync(databaseOf(box)))
  const before = octets()
  const refused = async (sentence: string): Promise<void> => {
    await expect(box.restart()).rejects.toThrow(sentence)
    expect(readdirSync(keysOf(box))).not.toContain('master.key')
    expect(octets().equals(before)).toBe(true)
  }
  renameSync(file, elsewhere)
  await refused(`${file} is missing, although this box had a master key.`)
  // of a rotation, long past or cut off
  for (const name of ['master.key.former', 'master.key.next']) {
    writeFileSync(join(keysOf(box), name), `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 })
  }
  await refused(`${file} is missing, although this box had a master key.`)
  for (const name of ['master.key.former', 'master.key.next']) rmSync(join(keysOf(box), name))
  // the whole directory of keys
  renameSync(keysOf(box), `${keysOf(box)}-away`)
  await expect(box.restart()).rejects.toThrow(`${file} is missing, although this box had a master key.`)
  box.env['PILLARBOX_MASTER_KEY_FILE'] = join(box.directory, 'nowhere')
  await expect(box.restart()).rejects.toThrow(join(box.directory, 'nowhere'))
  box.env['PILLARBOX_MASTER_KEY_FILE'] = elsewhere
  await box.restart()
  await kept.expectAll()
})

test('a key that lies open is refused at the start, and so is one that is somebody else’s', async () => {
  const box = await appliance()
  const kept = await fill(box)
  await box.app.stop()
  const file = join(keysOf(box), 'master.key')
  chmodSync(file, 0o640)
  await expect(box.restart()).rejects.toThrow(`${file} can be read by users other than its owner (mode 640); set it to 0600.`)
  chmodSync(file, 0o600)

  // root can give a file away, anybody else can only be taken for another
  const us = process.geteuid!()
  if (us === 0) chownSync(file, 12_345, -1)
  else vi.spyOn(process, 'geteuid').mockReturnValue(us + 1)
  const owner = us === 0 ? 12_345 : us
  await expect(box.restart()).rejects.toThrow(`${file} belongs to another user (${owner}), who can read and replace it`)
  vi.restoreAllMocks()
  if (us === 0) chownSync(file, 0, -1)
  await box.restart()
  await kept.expectAll()
})
