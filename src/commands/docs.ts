import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { reference } from '../http/reference.ts'
import { declared } from './declared.ts'

export function addDocsCommand(program: Command): void {
  program
    .command('docs')
    .description('write the API reference, made from the routes and event types')
    .argument('[file]', 'where to', 'docs/api.md')
    .action(async (file: string) => writeFileSync(file, await apiReference()))
}

/** The API reference as Markdown. */
export function apiReference(): Promise<string> {
  return declared(({ routes, eventTypes }) => reference(routes, eventTypes))
}
