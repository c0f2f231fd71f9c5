import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, globSync, openSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { parsePostgresUrl } from '../../src/config/database/postgres-url.ts'
import { preparePostgres } from '../../src/store/postgres/prepare.ts'
import { freePort } from './free-port.ts'
import { run as runProgram, succeed } from './program.ts'

/** A server of PostgreSQL in a directory of its own, on loopback and on a Unix socket, that forgets what it stored when the machine does. */
export interface PostgresServer {
  port: number
  /** The directory of its Unix socket, and of its data. */
  directory: string
  /** The URL of one of its databases. */
  url(database: string): string
  /** Runs statements as the superuser, outside of a transaction. */
  run(database: string, ...statements: string[]): Promise<Record<string, unknown>[]>
  /** Ends it: `immediate` as a crash does. */
  stop(how?: 'fast' | 'immediate'): Promise<void>
  /** Starts it again on the same port. */
  start(): Promise<void>
  /** Kills its first process, or all of them at once, as a machine that ends. */
  kill(which: 'first' | 'all'): Promise<void>
  /** Makes a standby of this name, which replays what this server stores; a commit waits for it once `synchronize` was called. */
  standby(name?: string): Promise<PostgresServer>
  /** Lets each commit wait for the standby; resolves when it follows. */
  synchronize(): Promise<void>
  /** Makes a standby the server that is written to. */
  promote(): Promise<void>
  close(): Promise<void>
}

/** The programs of the newest PostgreSQL; undefined where it is not installed. */
export function postgresPrograms(): string | undefined {
  return globSync('/usr/lib/postgresql/*/bin/initdb')
    .map(dirname)
    .toSorted((one, other) => other.localeCompare(one, undefined, { numeric: true }))[0]
}

const servers = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of servers) child.kill('SIGQUIT')
})

/** What runs a program as a user that PostgreSQL accepts: it refuses root. */
const asUser = process.getuid?.() === 0 ? ['--reuid=postgres', '--regid=postgres', '--clear-groups'] : []

/** Options that are undefined are left to the server, so that statements can set them. */
export async function startPostgres(
  options: Record<string, string | undefined> = {},
  encoding = 'UTF8',
): Promise<PostgresServer> {
  const initdb = ['--locale=C', `--encoding=${encoding}`, '--no-sync', '--auth=trust', '--username=postgres']
  return startIn(['initdb', ...initdb], options)
}

/** Starts a server on the data that a program of PostgreSQL makes. */
async function startIn(
  [maker = '', ...flagsOfMaker]: string[],
  options: Record<string, string | undefined>,
): Promise<PostgresServer> {
  const programs = postgresPrograms()
  if (programs === undefined) throw new Error('PostgreSQL is not installed (apt-get install postgresql).')
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-postgres-'))
  chmodSync(directory, 0o777)
  const data = join(directory, 'data')
  await succeed('setpriv', [...asUser, join(programs, maker), ...flagsOfMaker, '-D', data], { cwd: directory })
  const port = await freePort()
  const settings = {
    port: String(port),
    unix_socket_directories: directory,
    listen_addresses: '127.0.0.1',
    max_connections: '400',
    fsync: 'off',
    full_page_writes: 'off',
    shared_buffers: '64MB',
    jit: 'off',
    ...options,
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => (value === undefined ? [] : ['-c', `${name}=${value}`]))
  // refused statements, with their errors
  const log = openSync(process.env['TEST_POSTGRES_LOG'] ?? '/dev/null', 'a')
  let running: ChildProcess | undefined
  const url = (database: string): string => `postgres://postgres@127.0.0.1:${port}/${database}`
  const run: PostgresServer['run'] = async (database, ...statements) => {
    const client = new pg.Client(url(database))
    await client.connect()
    try {
      let rows: Record<string, unknown>[] = []
      for (const statement of statements) rows = (await client.query<Record<string, unknown>>(statement)).rows
      return rows
    } finally {
      await client.end()
    }
  }
  const start = async (): Promise<void> => {
    const child = spawn('setpriv', [...asUser, join(programs, 'postgres'), '-D', data, ...flags], {
      cwd: directory,
      stdio: ['ignore', 'ignore', log],
    })
    running = child
    servers.add(child)
    child.once('exit', () => servers.delete(child))
    const until = Date.now() + 60_000
    for (;;) {
      try {
        await run('postgres', 'SELECT 1')
        return
      } catch (error) {
        if (child.exitCode !== null || Date.now() > until) throw error
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  }
  const stop: PostgresServer['stop'] = async (how = 'fast') => {
    const child = running
    if (!child || child.exitCode !== null) return
    running = undefined
    // setpriv has become the server
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await ended
  }
  const kill: PostgresServer['kill'] = async (which) => {
    const child = running!
    running = undefined
    const ended = new Promise((resolve) => child.once('exit', resolve))
    const others = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').match(/\d+/g) ?? []
    child.kill('SIGKILL')
    // those that are left end by themselves when they next wait
    if (which === 'all') await runProgram('kill', ['-KILL', ...others])
    await ended
  }
  const standby = (name = 'standby'): Promise<PostgresServer> => {
    const source = ['-R', '-c', 'fast', '--no-sync', '-d', `host=127.0.0.1 port=${port} user=postgres application_name=${name}`]
    return startIn(['pg_basebackup', ...source], options)
  }
  const until = async (query: string): Promise<void> => {
    for (const end = Date.now() + 60_000; (await run('postgres', query)).length === 0;) {
      if (Date.now() > end) throw new Error(`PostgreSQL answers nothing to ${query}.`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  const synchronize = async (): Promise<void> => {
    await run('postgres', "ALTER SYSTEM SET synchronous_standby_names = '*'", 'SELECT pg_reload_conf()')
    await until("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'")
  }
  const promote = async (): Promise<void> => {
    await run('postgres', 'SELECT pg_promote(false)')
    await until('SELECT 1 WHERE NOT pg_is_in_recovery()')
  }
  const close = async (): Promise<void> => {
    await stop('immediate')
    rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
  try {
    await start()
  } catch (error) {
    await close()
    throw error
  }
  return { port, directory, url, run, stop, start, kill, standby, synchronize, promote, close }
}

/** Functions of SQLite that tests use beside the box. */
const beside = [
  // of one number with leading zeros
  `CREATE FUNCTION printf(form text, number bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT regexp_replace(form, '%0\\d+d',
    lpad(number::text, substring(form FROM '%0(\\d+)d')::integer, '0')) $$`,
  `CREATE FUNCTION pragma_table_info(of text) RETURNS TABLE (name text, type text) LANGUAGE sql STABLE STRICT
    AS $$ SELECT attname::text, CASE format_type(atttypid, atttypmod) WHEN 'bytea' THEN 'BLOB' WHEN 'text' THEN 'TEXT' ELSE 'INTEGER' END
      FROM pg_attribute WHERE attrelid = of::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum $$`,
  `CREATE FUNCTION pragma_index_list(of text) RETURNS TABLE (name text, "unique" integer) LANGUAGE sql STABLE STRICT
    AS $$ SELECT indexrelid::regclass::text, indisunique::integer FROM pg_index WHERE indrelid = of::regclass $$`,
  `CREATE FUNCTION pragma_index_info(of text) RETURNS TABLE (name text) LANGUAGE sql STABLE STRICT
    AS $$ SELECT attname::text FROM pg_attribute WHERE attrelid = of::regclass ORDER BY attnum $$`,
  `CREATE FUNCTION randomblob(bytes integer) RETURNS bytea LANGUAGE sql VOLATILE STRICT
    AS $$ SELECT substr(sha512(random()::text::bytea), 1, bytes) $$`,
  `CREATE FUNCTION zeroblob(bytes integer) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT decode(repeat('00', bytes), 'hex') $$`,
]

/** The database that the databases of boxes are copied from. */
const template = 'pillarbox_template'

/** Creates the database that `newDatabase` copies. */
export async function addTemplate(server: Pick<PostgresServer, 'url' | 'run'>): Promise<void> {
  await server.run('postgres', `CREATE DATABASE ${template} ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0`)
  await preparePostgres(parsePostgresUrl(server.url(template)), false)
  await server.run(template, ...beside)
}

let last = 0

/** A migrated database of its own, on the server at this URL of `%`. */
export async function newDatabase(urls: string): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `box_${process.pid}_${(last += 1)}`
  const admin = async (statement: string): Promise<void> => {
    const client = new pg.Client(urls.replace('%', 'postgres'))
    await client.connect()
    try {
      await client.query(statement)
    } finally {
      await client.end()
    }
  }
  await admin(`CREATE DATABASE ${name} TEMPLATE ${template}`)
  return { url: urls.replace('%', name), drop: () => admin(`DROP DATABASE ${name} WITH (FORCE)`) }
}
