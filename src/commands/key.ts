import type { Command } from 'commander'
import { opened, settingsFile } from './stopped-box.ts'

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
