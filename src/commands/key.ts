import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { App } from '../app.ts'
import { loadConfig } from '../config.ts'
import { createLog } from '../core/log.ts'

const settingsFile = 'settings file (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml if there is one)'

/** `pillarbox key …`. Throws a sentence when there is no box or it is running, or its key cannot be changed. */
export function addKeyCommand(program: Command): void {
  const key = program.command('key').description('the keys of the box')
  key
    .command('rotate-master')
    .description('make a new master key, which secrets are sealed under, and seal everything anew; the box must be stopped')
    .option('-c, --config <file>', settingsFile)
    .action(rotateMaster)
  key
    .command('rotate-signing')
    .description('let the next key sign identity tokens and credentials; the box must be stopped')
    .option('-c, --config <file>', settingsFile)
    .option('--now', 'replace all keys at once: others may have them. What they signed is void')
    .action(rotateSigning)
}

async function rotateMaster({ config: file }: { config?: string }): Promise<void> {
  const { values, former } = await opened(file, (app) => app.rotateMasterKey())
  process.stdout.write(`The master key was changed, and what it seals (${values} values) was sealed anew.
The key before is kept in ${former}: backups from before open with it only.
Remove it once there are none.
`)
}

async function rotateSigning({ config: file, now = false }: { config?: string; now?: boolean }): Promise<void> {
  const kid = await opened(file, (app) => app.rotateSigningKey({ now }))
  const rest = now
    ? 'All keys were replaced: what they signed verifies no more, elsewhere within five minutes of the next start.'
    : 'What the key before has signed verifies until it expires.'
  process.stdout.write(`The key ${kid} signs from now on. ${rest}\n`)
}

async function opened<T>(file: string | undefined, work: (app: App) => Promise<T>): Promise<T> {
  process.umask(0o077)
  const config = await loadConfig({ file, env: process.env, cwd: process.cwd() })
  // opening makes what is not there: a mistaken path must not begin a second box
  if (!existsSync(join(config.data_dir, 'state.json'))) throw new Error(`There is no box in ${config.data_dir}.`)
  const app = await App.open(config, createLog('warn'))
  try {
    return await work(app)
  } finally {
    await app.stop()
  }
}
