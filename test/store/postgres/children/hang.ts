import { parsePostgresUrl } from '../../../../src/config/database/postgres-url.ts'
import { createLog } from '../../../../src/core/log.ts'
import { PostgresDatabase } from '../../../../src/store/postgres/database.ts'
import { writeLine } from '../../../support/write-line.ts'
import { hangs, heartbeat, QueueOfBox, type TestLoad } from '../queue-of-box.ts'

// a box whose attempts never end; each is written to standard output
const [url = '', ...lanes] = process.argv.slice(2)
const database = await PostgresDatabase.open(parsePostgresUrl(url), createLog('silent'), { shared: true, heartbeat })
const box = new QueueOfBox(database, async (load: TestLoad, signal: AbortSignal) => {
  await writeLine(load.text)
  return hangs(load, signal)
})
await box.queue.start()
for (const lane of lanes) await box.enqueue(`killed in ${lane}`, lane)
