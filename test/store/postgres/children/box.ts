import { App } from '../../../../src/app.ts'
import { loadConfig } from '../../../../src/config.ts'
import { systemClock } from '../../../../src/core/clock.ts'
import { createLog } from '../../../../src/core/log.ts'
import { writeLine } from '../../../support/write-line.ts'
import { heartbeat } from '../queue-of-box.ts'

// one of several boxes on a database, with these settings; its URL is written to standard output
const env = JSON.parse(process.argv[2]!) as Record<string, string>
const config = await loadConfig({ env, cwd: env['PILLARBOX_DATA_DIR']! })
const app = await App.open(config, createLog('silent'), systemClock, {
  schedule: { idle: true },
  postgres: { shared: true, heartbeat },
})
await app.start()
await writeLine(app.publicUrl)
