import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createLog } from '../../src/core/log.ts'
import { type Caller, scopes } from '../../src/core/scopes.ts'
import { sql } from '../../src/store/database.ts'
import { prepare } from '../../src/store/migrate.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { acquaintanceOf } from '../../src/trust/acquaintance.ts'
import { folder } from '../support/folder.ts'

test('who is asked about while the mail cannot be looked through in time is somebody of whom that is not known', async () => {
  const file = join(folder(), 'box.db')
  prepare(file, false)
  const database = await SqliteDatabase.open(file, createLog('silent'))
  onTestFinished(() => database.close())
  const caller = { account_id: 'acct_1', identity_id: null, scopes: new Set(scopes) } as unknown as Caller
  expect(await acquaintanceOf(database, caller, 'sam@far.test')).toEqual({ proven: 0, suppressed: undefined })
  // what is slow waits for what is slow of the same account; nothing in SQLite can be made to last a time, so it is tried how long it takes
  const counted = (rows: number) =>
    database.slow(
      sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows}) SELECT count(*) FROM n`,
      60_000,
      caller.account_id,
    )
  const begun = performance.now()
  await counted(300_000)
  const held = counted(Math.ceil((300_000 * 9000) / (performance.now() - begun)))
  expect(await acquaintanceOf(database, caller, 'sam@far.test')).toEqual({ proven: 'too_slow', suppressed: undefined })
  await held
})
