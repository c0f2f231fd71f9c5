import type { Command } from 'commander'
import { type BoxOptions, ofBox, opened } from './support/box.ts'
import { say } from './support/say.ts'

/** `pillarbox reputation recount`. Throws a sentence when there is no box, it is running, or the beginning of its log was pruned. */
export function addReputationCommand(program: Command): void {
  const recounting = program
    .command('reputation')
    .description('reputation of identities')
    .command('recount')
    .description('recount from the event log, and correct differences; the box must be stopped')
  ofBox(recounting, { account: false }).action(recount)
}

async function recount(options: BoxOptions): Promise<void> {
  const counted = await opened(options, (app) => app.recountReputations())
  const { identities, corrected } = counted
  const outcome = corrected === 0 ? 'All counts were correct.' : `${corrected} had wrong counts, which were corrected.`
  say(options, counted, `The log has events of ${identities} identities. ${outcome}`)
}
