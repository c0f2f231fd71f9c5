import { afterAll, beforeAll, beforeEach, onTestFinished } from 'vitest'
import { parsePostgresUrl } from '../../../src/config/database/postgres-url.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import { createLog } from '../../../src/core/log.ts'
import { PostgresDatabase, type PostgresOptions } from '../../../src/store/postgres/database.ts'
import { absent } from '../../support/peer.ts'
import { postgresPrograms, type PostgresServer, startPostgres } from '../../support/postgres-server.ts'

/** A server for the tests of a file, which close it; undefined where PostgreSQL is not installed. */
export async function server(options?: Record<string, string | undefined>): Promise<PostgresServer | undefined> {
  if (postgresPrograms() === undefined) return absent('PostgreSQL', 'PostgreSQL is not installed (apt-get install postgresql)')
  return startPostgres(options)
}

/** The server of all tests of a file, which are left out where PostgreSQL is not installed; there is none before the first of them. */
export function serverOfFile(options?: Record<string, string | undefined>): () => PostgresServer {
  let started: PostgresServer | undefined
  beforeAll(async () => {
    started = await server(options)
  })
  afterAll(async () => {
    await started?.close()
  })
  beforeEach((context) => {
    if (!started) context.skip()
  })
  return () => started!
}

/** Creates an empty database. */
export async function emptyDatabase(
  at: PostgresServer,
  name: string,
  options = "ENCODING 'UTF8' LOCALE 'C'",
): Promise<PostgresTarget> {
  await at.run('postgres', `CREATE DATABASE ${name} ${options} TEMPLATE template0`)
  return parsePostgresUrl(at.url(name))
}

/** Opens a database, which is closed when the test ends; `logged` has the lines of its log. */
export async function opened(
  target: PostgresTarget,
  options?: PostgresOptions,
): Promise<{ database: PostgresDatabase; logged: string[] }> {
  const logged: string[] = []
  const log = createLog('trace', { write: (line: string) => void logged.push(line) })
  const database = await PostgresDatabase.open(target, log, options)
  onTestFinished(() => database.close())
  return { database, logged }
}
