import type { Command } from 'commander'
import type { Reloaded } from '../ops/status/model.ts'
import { type BoxOptions, ofBox, runningBox } from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { say } from './support/say.ts'

/** `pillarbox reload`: exit status 1 when the box does not run, or rejects the settings and keeps the former ones. */
export function addReloadCommand(program: Command): void {
  const reload = program
    .command('reload')
    .description('reload the settings of the running box; invalid ones change nothing, with exit status 1')
  ofBox(reload).action(async (options: BoxOptions) => {
    const box = await runningBox(options)
    if (!box) throw new Failure('The box is not running: it reads its settings when it starts.', 'not_running')
    const { reloaded, restart } = await box.call<Reloaded>('POST', '/v1/reload')
    const lines = [
      reloaded.length > 0 ? `In effect now: ${reloaded.join(', ')}.` : 'No change takes effect without a restart.',
      ...(restart.length > 0 ? [`In effect after a restart: ${restart.join(', ')}.`] : []),
    ]
    say(options, { reloaded, restart }, lines.join('\n'))
  })
}
