import * as z from 'zod'
import { parsePostgresUrl } from '../../../../src/config/database/postgres-url.ts'
import { systemClock } from '../../../../src/core/clock.ts'
import { createLog } from '../../../../src/core/log.ts'
import { EventLog } from '../../../../src/events/log.ts'
import { eventType } from '../../../../src/events/model.ts'
import { sql } from '../../../../src/store/database.ts'
import { PostgresDatabase } from '../../../../src/store/postgres/database.ts'
import { writeLine } from '../../../support/write-line.ts'

// a box that writes events in several transactions at once, some of which are rolled back; what is committed is written to standard output
const [url = '', name = ''] = process.argv.slice(2)
const database = await PostgresDatabase.open(parsePostgresUrl(url), createLog('silent'), { shared: true, writers: 3 })
const events = new EventLog(database, systemClock)
const type = eventType('test.written', [], 'a test', z.object({ note: z.string() }))
let count = 0

async function write(writer: number): Promise<void> {
  for (;;) {
    const notes = Array.from({ length: 1 + Math.floor(Math.random() * 3) }, () => `${name}.${writer}.${(count += 1)}`)
    const failing = Math.random() < 0.1
    await database
      .transaction(async (tx) => {
        for (const note of notes) {
          await events.append(tx, type, {
            account_id: 'acct_1',
            identity_id: null,
            data: { note: failing ? 'rolled back' : note },
          })
          if (Math.random() < 0.3) await tx.all(sql`SELECT pg_sleep(${Math.random() * 0.02})`)
        }
        if (failing) throw new Error('rolled back')
      })
      .then(() => writeLine(notes.join(' ')))
      .catch(() => undefined)
  }
}

await Promise.all([0, 1, 2, 3].map(write))
