import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { Config } from '../../config.ts'
import { settingsReference } from '../../config/reference.ts'
import { reference } from '../../http/openapi/reference.ts'
import { declared } from './declared.ts'
import { version } from '../../version.ts'
import { manual } from './manual.ts'
import { commandReference } from './reference.ts'

export function addDocsCommand(program: Command): void {
  program
    .command('docs')
    .description('generate the reference of the API, the commands or the settings, or the manual page')
    .argument('[file]', 'output file (default: docs/api.md, docs/commands.md, docs/settings.md, docs/pillarbox.1)')
    .option('--commands', 'the reference of the commands, generated from their help', false)
    .option('--man', 'the manual page, generated from the declarations of the commands', false)
    .option('--settings', 'the reference of the settings, generated from their declarations', false)
    .action(
      async (file: string | undefined, { commands, man, settings }: { commands: boolean; man: boolean; settings: boolean }) => {
        if (settings) writeFileSync(file ?? 'docs/settings.md', settingsReference(Config))
        else if (commands) writeFileSync(file ?? 'docs/commands.md', commandReference(program))
        else if (man) writeFileSync(file ?? 'docs/pillarbox.1', manual(program, version))
        else writeFileSync(file ?? 'docs/api.md', await apiReference())
      },
    )
}

/** The API reference as Markdown. */
export function apiReference(): Promise<string> {
  return declared(({ routes, eventTypes }) => reference(routes, eventTypes))
}
