import { setTimeout as sleep } from 'node:timers/promises'
import { parsePostgresUrl } from '../../../../src/config/database/postgres-url.ts'
import { createLog } from '../../../../src/core/log.ts'
import { PostgresDatabase } from '../../../../src/store/postgres/database.ts'
import { writeLine } from '../../../support/write-line.ts'
import { heartbeat } from '../queue-of-box.ts'

// one of several boxes, whose process does nothing for so many milliseconds, and then runs on
const [url, name, length] = process.argv.slice(2) as [string, string, string]
await PostgresDatabase.open(parsePostgresUrl(url), createLog('silent'), { shared: true, heartbeat, name })
await writeLine('open')
await sleep(3 * heartbeat.beat)
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(length))
await writeLine('on')
setInterval(() => {}, 1000)
