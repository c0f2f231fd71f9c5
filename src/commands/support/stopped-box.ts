import type { Command } from 'commander'
import type { App } from '../../app.ts'
import { createLog } from '../../core/log.ts'
import { type BoxOptions, holdsBox, settingsOf } from './box.ts'
import { actAsOwner, mustBeOpen } from './owner.ts'
import { withJson } from './say.ts'

/** Adds the options that select a box, for all accounts. */
export function ofStoppedBox(command: Command): Command {
  return withJson(
    command
      .option('-c, --config <file>', 'settings file (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml if there is one)')
      .option('--data <directory>', 'data directory (default: $PILLARBOX_DATA_DIR, else from the settings)'),
  )
}

/** Opens the selected box without starting it, while `work` runs. Throws a sentence when there is none or it runs. */
export async function opened<T>(options: BoxOptions, work: (app: App) => Promise<T>): Promise<T> {
  process.umask(0o077)
  const config = await settingsOf(options)
  mustBeOpen(config.data_dir)
  // opening creates missing files: a mistyped path must not create a second box
  if (!holdsBox(config.data_dir)) throw new Error(`There is no box in ${config.data_dir}.`)
  actAsOwner(config.data_dir)
  const { App } = await import('../../app.ts')
  // standard output contains only the command's result
  const app = await App.open(config, createLog('warn', process.stderr))
  try {
    return await work(app)
  } finally {
    await app.stop()
  }
}
