import { join } from 'node:path'
import { expect, test } from 'vitest'
import { masterKeySource } from '../../src/core/service-unit.ts'
import { folder } from '../support/folder.ts'

test('the master key is to be copied from where it lies, not from what systemd handed over', () => {
  const box = { data_dir: join(folder(), 'data'), keys_dir: '/srv/box/keys' }
  const handed = '/run/credentials/pillarbox.service/master.key'
  expect(masterKeySource({ ...box, master_key_file: handed })).toBe('/srv/box/keys/master.key')
  expect(masterKeySource({ ...box, master_key_file: '/mnt/usb/master.key' })).toBe('/mnt/usb/master.key')
  expect(masterKeySource(box)).toBe('/srv/box/keys/master.key')
})
