import type { Command } from 'commander'
import { completionScript, type Shell, shells } from './shells.ts'

/** `pillarbox completion`: the script by which a shell completes our command line. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print the completion script of a shell: source <(pillarbox completion bash)')
    .addArgument(program.createArgument('<shell>').choices(shells))
    .action((shell: Shell) => {
      process.stdout.write(completionScript(program, shell))
    })
}
