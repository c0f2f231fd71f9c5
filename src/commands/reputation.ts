import type { Command } from 'commander'
import { opened, settingsFile } from './stopped-box.ts'

/** `pillarbox reputation recount`. Throws a sentence when there is no box, it is running, or its log does not go back to the beginning. */
export function addReputationCommand(program: Command): void {
  program
    .command('reputation')
    .description('what is counted of identities')
    .command('recount')
    .description('count anew from the log, and correct what differs; the box must be stopped')
    .option('-c, --config <file>', settingsFile)
    .action(recount)
}

async function recount({ config: file }: { config?: string }): Promise<void> {
  const { identities, corrected } = await opened(file, (app) => app.recountReputations())
  const outcome =
    corrected === 0 ? 'All was counted right.' : `Of ${corrected} something else was counted before; it is corrected.`
  process.stdout.write(`The log tells something of ${identities} identities. ${outcome}\n`)
}
