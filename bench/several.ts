import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PostgresServer, startPostgres } from '../test/support/postgres-server.ts'
import { succeed } from '../test/support/program.ts'
import { type Box, startBox } from './box.ts'
import { openStore, seedIdentities } from './seed.ts'

const program = new URL('../src/main.ts', import.meta.url).pathname

/** A server of PostgreSQL that syncs to its disk. */
export interface Server extends PostgresServer {
  pid: number
}

export async function startServer(): Promise<Server> {
  const server = await startPostgres({ fsync: 'on', full_page_writes: 'on', shared_buffers: '512MB', max_connections: '100' })
  const pid = Number(readFileSync(join(server.directory, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
  return { ...server, pid }
}

interface Wanted {
  server: Server
  directory: string
  /** The name of the database, which is created. */
  database: string
  boxes: number
  dns: string
  /** The names of `seedIdentities`, and how many of each. */
  names: string[]
  identities: number
  env?: Record<string, string>
}

/** Starts boxes on a database of their own: one that has it alone, or several. */
export async function startPostgresBoxes(wanted: Wanted): Promise<Box[]> {
  const { server, directory, database, boxes, dns, names, identities, env } = wanted
  const data = join(directory, 'data')
  mkdirSync(directory, { recursive: true })
  const store = await openStore(data)
  for (const name of names) await seedIdentities(store, name, identities)
  await store.close()
  await server.run('postgres', `CREATE DATABASE ${database} ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0`)
  const url = server.url(database)
  await succeed(process.execPath, [program, 'move', '--to', url, '--data', data], { cwd: directory })
  const started: Box[] = []
  for (let number = 0; number < boxes; number += 1) {
    const own = number === 0 ? data : join(directory, `data-${number}`)
    if (number > 0) cpSync(`${data}-keys`, `${own}-keys`, { recursive: true })
    const settings = { PILLARBOX_DATABASE__URL: url, PILLARBOX_DATABASE__SEVERAL: String(boxes > 1), ...env }
    started.push(await startBox({ directory: own, dns, env: settings }))
  }
  return started
}
