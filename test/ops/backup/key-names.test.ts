import { expect, test } from 'vitest'
import { openKeys, sealKeys } from '../../../src/ops/backup/sealed-keys.ts'

const passphrase = 'correct horse battery'

const named = (name: string): { name: string; content: Buffer } => ({ name, content: Buffer.from('key') })

test('what else lies beside the keys does not make a backup of them worthless, whatever it is called', async () => {
  const files = ['master.key', '.hidden', 'master.key~', 'key of ada.pem', 'acme/Überblick', '.restoring/unfinished'].map(named)
  expect(await openKeys(await sealKeys(files, passphrase, 'one box'), passphrase, 'one box')).toEqual(files)
})

test.each(['../master.key', 'acme/../../master.key', '/etc/passwd', 'acme//key', 'a\0b'])(
  'keys called %j are put nowhere',
  async (name) => {
    const sealed = await sealKeys([named(name)], passphrase, 'one box')
    await expect(openKeys(sealed, passphrase, 'one box')).rejects.toThrow(/unknown format/)
  },
)
