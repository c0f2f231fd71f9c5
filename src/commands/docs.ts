import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { reference } from '../http/reference.ts'
import { declared } from './declared.ts'
import { commandReference } from './reference.ts'

export function addDocsCommand(program: Command): void {
  program
    .command('docs')
    .description('write the API reference, made from the routes and event types, or that of the commands')
    .argument('[file]', 'where to (default: docs/api.md, or docs/commands.md)')
    .option('--commands', 'the reference of the commands, made from their help', false)
    .action(async (file: string | undefined, { commands }: { commands: boolean }) => {
      if (commands) writeFileSync(file ?? 'docs/commands.md', commandReference(program))
      else writeFileSync(file ?? 'docs/api.md', await apiReference())
    })
}

/** The API reference as Markdown. */
export function apiReference(): Promise<string> {
  return declared(({ routes, eventTypes }) => reference(routes, eventTypes))
}
