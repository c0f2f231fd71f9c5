import { writeSync } from 'node:fs'
import { createLog } from '../../../src/core/log.ts'
import { MasterKey } from '../../../src/core/master-key.ts'
import { Keyring } from '../../../src/store/keyring.ts'
import { SqliteDatabase } from '../../../src/store/sqlite.ts'
import { sealedSecrets } from '../../../src/totp/secrets.ts'

// changes the master key again and again, and writes a line for each time
const [file = '', keys = ''] = process.argv.slice(2)
const database = await SqliteDatabase.open(file, createLog('silent'))
writeSync(1, 'open\n')
for (;;) {
  const keyring = await Keyring.open(database, new MasterKey(keys))
  const { values } = await keyring.rotate([sealedSecrets])
  writeSync(1, `${values}\n`)
}
