import { App } from '../../../src/app.ts'
import { loadConfig } from '../../../src/config.ts'
import { createLog } from '../../../src/core/log.ts'

// changes the master key of a stopped box, and dies as soon as the step named is done
const [cwd = '', settings = '{}', last = ''] = process.argv.slice(2)
const app = await App.open(await loadConfig({ env: JSON.parse(settings) as Record<string, string>, cwd }), createLog('silent'))
await app.rotateMasterKey((step) => {
  if (step === last) process.kill(process.pid, 'SIGKILL')
})
await app.stop()
