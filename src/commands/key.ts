import type { Command } from 'commander'
import { ofBox, withBox } from './box.ts'
import type { BoxOptions } from './box.ts'
import { say, withJson } from './say.ts'
import { opened, settingsFile } from './stopped-box.ts'

type Signing = BoxOptions & { json?: boolean; now?: boolean }

/** `pillarbox key …`. Throws a sentence when there is no box, or its key cannot be changed (for `rotate-master` also when it runs). */
export function addKeyCommand(program: Command): void {
  const key = program.command('key').description('the keys of the box')
  key
    .command('rotate-master')
    .description('make a new master key, which secrets are sealed under, and seal everything anew; the box must be stopped')
    .option('-c, --config <file>', settingsFile)
    .action(rotateMaster)
  const signing = key
    .command('rotate-signing')
    .description('let the next key sign identity tokens and credentials; the box may run')
    .option('--now', 'replace all keys at once: others may have them. What they signed is void')
  withJson(ofBox(signing)).action(rotateSigning)
}

async function rotateMaster({ config: file }: { config?: string }): Promise<void> {
  const { values, former } = await opened(file, (app) => app.rotateMasterKey())
  process.stdout.write(`The master key was changed, and what it seals (${values} values) was sealed anew.
The key before is kept in ${former}: backups from before open with it only.
Remove it once there are none.
`)
}

async function rotateSigning({ now = false, ...options }: Signing): Promise<void> {
  await withBox(options, async (box) => {
    const rotated = await box.call<{ kid: string }>('POST', '/v1/signing-keys/rotate', { now })
    const rest = now
      ? 'All keys were replaced: what they signed verifies no more, elsewhere within five minutes.'
      : 'What the key before has signed verifies until it expires.'
    say(options, rotated, `The key ${rotated.kid} signs from now on. ${rest}`)
  })
}
