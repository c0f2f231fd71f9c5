import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { onTestFinished } from 'vitest'
import { type Appliance, openAppliance } from '../../support/appliance.ts'

/** A box that does not run, with an identity and this many MiB of octets that no packing makes smaller. */
export async function bigBox(mebibytes: number): Promise<Appliance> {
  const { box, close } = await openAppliance()
  onTestFinished(close)
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await box.app.stop()
  const database = new DatabaseSync(join(box.directory, 'data', 'pillarbox.db'))
  const insert = database.prepare('INSERT INTO blobs (size, deflated, bytes) VALUES (1048576, 0, ?)')
  database.exec('BEGIN')
  for (let count = 0; count < mebibytes; count += 1) insert.run(randomBytes(2 ** 20))
  database.exec('COMMIT')
  database.close()
  return box
}
