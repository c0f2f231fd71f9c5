import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { App } from '../app.ts'
import { loadConfig } from '../config.ts'
import { createLog } from '../core/log.ts'

/** `pillarbox key rotate-master`. Throws a sentence when there is no box or it is running, or its key cannot be changed. */
export function addKeyCommand(program: Command): void {
  program
    .command('key')
    .description('the master key that secrets are sealed under')
    .command('rotate-master')
    .description('make a new master key and seal everything anew under it; the box must be stopped')
    .option('-c, --config <file>', 'settings file (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml if there is one)')
    .action(rotate)
}

async function rotate({ config: file }: { config?: string }): Promise<void> {
  process.umask(0o077)
  const config = await loadConfig({ file, env: process.env, cwd: process.cwd() })
  // opening makes what is not there: a mistaken path must not begin a second box
  if (!existsSync(join(config.data_dir, 'state.json'))) throw new Error(`There is no box in ${config.data_dir}.`)
  const app = await App.open(config, createLog('warn'))
  try {
    const { values, former } = await app.rotateMasterKey()
    process.stdout.write(`The master key was changed, and what it seals (${values} values) was sealed anew.
The key before is kept in ${former}: backups from before open with it only.
Remove it once there are none.
`)
  } finally {
    await app.stop()
  }
}
