import { createLog } from '../../../src/core/log.ts'
import { MasterKey } from '../../../src/core/seal/master-key.ts'
import { Keyring } from '../../../src/store/keyring.ts'
import { SqliteDatabase } from '../../../src/store/sqlite/database.ts'
import { sealedSecrets } from '../../../src/totp/secrets.ts'
import { writeLine } from '../../support/write-line.ts'

// changes the master key again and again, and writes a line for each time
const [file = '', keys = ''] = process.argv.slice(2)
const database = await SqliteDatabase.open(file, createLog('silent'))
await writeLine('open')
for (;;) {
  const keyring = await Keyring.open(database, new MasterKey(keys))
  const { values } = await keyring.rotate([sealedSecrets])
  await writeLine(`${values}`)
}
