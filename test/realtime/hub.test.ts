import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { systemClock } from '../../src/core/clock.ts'
import { createLog } from '../../src/core/log.ts'
import { EventLog } from '../../src/events/log.ts'
import { eventType } from '../../src/events/model.ts'
import { Hub } from '../../src/realtime/hub.ts'
import { prepare } from '../../src/store/migrate.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { folder } from '../support/folder.ts'

test('one who fails to hear keeps the event from nobody else, and the failure is logged', async () => {
  const file = join(folder(), 'pillarbox.db')
  prepare(file, false)
  const lines: string[] = []
  const log = createLog('error', { write: (line: string) => void lines.push(line) })
  const database = await SqliteDatabase.open(file, log)
  onTestFinished(() => database.close())
  const events = new EventLog(database, systemClock)
  const hub = new Hub(events)
  const heard: string[] = []
  const watch = (place: string, hear: () => void): unknown => hub.watch(place, { account_id: 'acct_1', receive: hear })
  watch('ident_1', () => {
    throw new Error('cannot hear')
  })
  watch('ident_1', () => heard.push('the identity’s second'))
  watch('acct_1', () => heard.push('the account’s'))
  const noted = eventType('note.added', ['identities:read'], 'A note.', z.object({}))
  await database.transaction((tx) => events.append(tx, noted, { account_id: 'acct_1', identity_id: 'ident_1', data: {} }))
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(heard).toEqual(['the identity’s second', 'the account’s'])
  expect(lines.join()).toContain('cannot hear')
})
