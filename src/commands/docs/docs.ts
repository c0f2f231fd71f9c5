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
import { pythonMethods, pythonTypes } from './sdk/python.ts'
import { sdkTable } from './sdk/table.ts'
import { typescriptMethods, typescriptTypes } from './sdk/typescript.ts'

export function addDocsCommand(program: Command): void {
  program
    .command('docs')
    .description(
      'generate the reference of the API, the commands or the settings, the manual page, or the printed files of the client libraries',
    )
    .argument(
      '[file]',
      'output file (default: docs/api.md, docs/commands.md, docs/settings.md, docs/pillarbox.1); with --sdk the folder of the client libraries (default: clients)',
    )
    .option('--commands', 'the reference of the commands, generated from their help', false)
    .option('--man', 'the manual page, generated from the declarations of the commands', false)
    .option('--sdk', 'the types and methods of the client libraries, generated from the route declarations', false)
    .option('--settings', 'the reference of the settings, generated from their declarations', false)
    .action(
      async (
        file: string | undefined,
        { commands, man, sdk, settings }: { commands: boolean; man: boolean; sdk: boolean; settings: boolean },
      ) => {
        if (sdk) for (const [path, text] of await clientFiles()) writeFileSync(join(file ?? 'clients', path), text)
        else if (settings) writeFileSync(file ?? 'docs/settings.md', settingsReference(Config))
        else if (commands) writeFileSync(file ?? 'docs/commands.md', commandReference(program))
        else if (man) writeFileSync(file ?? 'docs/pillarbox.1', manual(program, version))
        else writeFileSync(file ?? 'docs/api.md', await apiReference())
      },
    )
}

export function apiReference(): Promise<string> {
  return declared(({ routes, eventTypes }) => reference(routes, eventTypes))
}

/** The printed files of the client libraries, by their path in `clients`. */
export async function clientFiles(): Promise<Map<string, string>> {
  const table = await declared(({ routes, eventTypes }) => sdkTable(routes, eventTypes))
  return new Map([
    ['typescript/src/types.ts', typescriptTypes(table)],
    ['typescript/src/methods.ts', typescriptMethods(table)],
    ['python/src/pillarbox/types.py', pythonTypes(table)],
    ['python/src/pillarbox/methods.py', pythonMethods(table)],
  ])
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
