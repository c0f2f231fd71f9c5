import { chmodSync, globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { folder } from './folder.ts'
import { absent } from './peer.ts'
import { run, succeed } from './program.ts'

/** What PostgreSQL refused, and why. */
export interface Refused {
  statement: string
  error: string
}

/** A database of PostgreSQL in a folder of its own; no server runs, each call starts a single process and ends it. */
export interface Postgres {
  /** Runs these statements, and returns those that fail. */
  execute(statements: readonly string[]): Promise<Refused[]>
}

/** Creates a database; undefined where PostgreSQL is not installed. */
export async function postgres(): Promise<Postgres | undefined> {
  const [programs] = globSync('/usr/lib/postgresql/*/bin/initdb')
    .map(dirname)
    .toSorted((one, other) => other.localeCompare(one, undefined, { numeric: true }))
  if (programs === undefined) return absent('PostgreSQL', 'PostgreSQL is not installed (apt-get install postgresql)')
  const parent = folder()
  const data = join(parent, 'data')
  // it refuses to run as root
  const user = process.getuid?.() === 0 ? ['--reuid=postgres', '--regid=postgres', '--clear-groups'] : []
  chmodSync(parent, 0o777)
  const initdb = [join(programs, 'initdb'), '--locale=C', '--encoding=UTF8', '--no-sync', '-D', data]
  await succeed('setpriv', [...user, ...initdb], { cwd: parent })
  const single = [join(programs, 'postgres'), '--single', '-c', 'fsync=off', '-c', 'log_line_prefix=', '-D', data, 'postgres']
  return {
    async execute(statements) {
      // a line is a statement
      const input = statements.map((statement) => `${statement.replaceAll(/\s+/g, ' ')}\n`).join('')
      const { code, errors } = await run('setpriv', [...user, ...single], { cwd: parent, input })
      if (code !== 0) throw new Error(`postgres ended with ${code}:\n${errors}`)
      const pattern = /^(?:ERROR|FATAL): +(.*)\n(?:(?:DETAIL|HINT|CONTEXT|QUERY): .*\n(?:\t.*\n)*)*STATEMENT: +(.*)$/gm
      return [...errors.matchAll(pattern)].map(([, error, statement]) => ({ statement: statement!, error: error! }))
    },
  }
}
