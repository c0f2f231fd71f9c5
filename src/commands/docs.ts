import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { loadConfig } from '../config.ts'
import { createLog } from '../core/log.ts'
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

/** The API reference as Markdown, from the declarations of a box that is opened but never started. */
export async function apiReference(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-docs-'))
  try {
    const config = await loadConfig({ env: { PILLARBOX_DATA_DIR: join(directory, 'data') }, cwd: directory })
    const [{ App }, { reference }] = await Promise.all([import('../app.ts'), import('../http/reference.ts')])
    const app = await App.open(config, createLog('silent'))
    const text = reference(app.routes, app.eventTypes)
    await app.stop()
    return text
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
