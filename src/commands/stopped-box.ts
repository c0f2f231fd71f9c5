import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { App } from '../app.ts'
import { loadConfig } from '../config.ts'
import { createLog } from '../core/log.ts'

export const settingsFile = 'settings file (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml if there is one)'

/** Opens the box of these settings without starting it, for as long as the work takes. Throws a sentence when there is none or it runs. */
export async function opened<T>(file: string | undefined, work: (app: App) => Promise<T>): Promise<T> {
  process.umask(0o077)
  const config = await loadConfig({ file, env: process.env, cwd: process.cwd() })
  // opening makes what is not there: a mistaken path must not begin a second box
  if (!existsSync(join(config.data_dir, 'state.json'))) throw new Error(`There is no box in ${config.data_dir}.`)
  const { App } = await import('../app.ts')
  const app = await App.open(config, createLog('warn'))
  try {
    return await work(app)
  } finally {
    await app.stop()
  }
}
