import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import { Config, loadConfig } from '../../config.ts'
import { createLog } from '../../core/log.ts'
import { settingsReference } from '../../config/reference.ts'
import { reference } from '../../http/openapi/reference.ts'
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

export function apiReference(): Promise<string> {
  return declared(({ routes, eventTypes }) => reference(routes, eventTypes))
}

/** The declarations of a box (its routes, its events, its encrypted columns), from an empty one that is never started. */
export async function declared<T>(look: (app: App) => T): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-declared-'))
  try {
    const config = await loadConfig({ env: { PILLARBOX_DATA_DIR: join(directory, 'data') }, cwd: directory })
    const { App } = await import('../../app.ts')
    const app = await App.open(config, createLog('silent'))
    try {
      return look(app)
    } finally {
      await app.stop()
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
