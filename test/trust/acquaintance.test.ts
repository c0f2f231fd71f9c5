import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Fault } from '../../src/core/fault.ts'
import { createLog } from '../../src/core/log.ts'
import { type Caller, scopes } from '../../src/core/scopes.ts'
import type { Database, Sql } from '../../src/store/database.ts'
import { prepare } from '../../src/store/migrate.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { acquaintanceOf } from '../../src/trust/acquaintance.ts'
import { folder } from '../support/folder.ts'

const slow = () => Promise.reject(new Fault('internal_error', 'It took too long.', { code: 'too_slow' }))

test('who is asked about while the mail cannot be looked through in time is somebody of whom that is not known', async () => {
  const file = join(folder(), 'box.db')
  prepare(file, false)
  const database = await SqliteDatabase.open(file, createLog('silent'))
  onTestFinished(() => database.close())
  const caller = { account_id: 'acct_1', identity_id: null, scopes: new Set(scopes) } as unknown as Caller
  expect(await acquaintanceOf(database, caller, 'sam@far.test')).toEqual({ proven: 0, suppressed: undefined })
  // nothing in SQLite can be made to last a time
  const busy = { slow, get: (query: Sql) => database.get(query) } as unknown as Database
  expect(await acquaintanceOf(busy, caller, 'sam@far.test')).toEqual({ proven: 'too_slow', suppressed: undefined })
})
