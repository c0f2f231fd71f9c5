import { readFileSync } from 'node:fs'
import pg from 'pg'
import { parserOf } from './values.ts'
import type { PostgresTarget } from './target.ts'

/** A connection to the server. */
export type Connection = pg.Client
export type Connections = pg.Pool

interface ConnectionOptions {
  /** Milliseconds after which a statement without an answer is given up, with its connection. */
  timeout: number
  /** Settings of the session. */
  session?: Record<string, string>
  /** Sends statements without waiting for the answers to those before. */
  pipeline?: boolean
}

/** Milliseconds for a connection to be made, or to become free. */
const connectTimeout = 5000

/** A pool for short reads; it sees only what is committed. */
export function openPool(target: PostgresTarget, max: number, options: ConnectionOptions): Connections {
  const pool = new pg.Pool({ ...settings(target, options), max, connectionTimeoutMillis: connectTimeout })
  // a connection that is lost while it is idle leaves the pool
  pool.on('error', ignore)
  // while it is in use, its statement fails; without a listener the process would end
  pool.on('connect', (client) => void client.on('error', ignore))
  return pool
}

/** Opens one connection. */
export async function connect(target: PostgresTarget, options: ConnectionOptions): Promise<Connection> {
  const client = new pg.Client({ ...settings(target, options), connectionTimeoutMillis: connectTimeout })
  client.on('error', ignore)
  try {
    await client.connect()
    return client
  } catch (error) {
    await client.end().catch(ignore)
    throw error
  }
}

/** One connection that is made when it is first needed, and again after it has ended. */
export class KeptConnection {
  readonly #target: PostgresTarget
  readonly #options: ConnectionOptions
  #current: Connection | undefined

  constructor(target: PostgresTarget, options: ConnectionOptions) {
    this.#target = target
    this.#options = options
  }

  /** Undefined while there is none. */
  get current(): Connection | undefined {
    return this.#current
  }

  async open(): Promise<Connection> {
    if (this.#current) return this.#current
    const connection = await connect(this.#target, this.#options)
    connection.on('end', () => {
      if (this.#current === connection) this.#current = undefined
    })
    return (this.#current = connection)
  }

  /** Ends the connection, with what runs on it. */
  async end(): Promise<void> {
    const connection = this.#current
    this.#current = undefined
    await connection?.end().catch(ignore)
  }
}

/** Removes what an error of the server quotes from rows and parameters: it would be logged. */
export function withoutValues(error: unknown): void {
  if (error instanceof pg.DatabaseError) Object.assign(error, { detail: undefined, where: undefined, internalQuery: undefined })
}

/** The SQLSTATE of an error that the server reported; undefined for a failure of the connection, and for errors of others. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined
}

function settings(target: PostgresTarget, { timeout, session = {}, pipeline = false }: ConnectionOptions): pg.ClientConfig {
  const { host, port, user, password, database } = target
  const options = Object.entries(session).map(([name, value]) => `-c ${name}=${value}`)
  return {
    host,
    port,
    database,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
    ssl: tls(target),
    application_name: 'pillarbox',
    keepAlive: true,
    query_timeout: timeout,
    pipeline,
    options: options.join(' '),
    types: { getTypeParser: ((type: number) => parserOf(type) ?? pg.types.getTypeParser(type)) as typeof pg.types.getTypeParser },
  }
}

function tls({ sslmode, sslrootcert }: PostgresTarget): pg.ClientConfig['ssl'] {
  if (sslmode === 'disable') return false
  if (sslmode === 'require') return { rejectUnauthorized: false }
  return { rejectUnauthorized: true, ...(sslrootcert === undefined ? {} : { ca: readFileSync(sslrootcert, 'utf8') }) }
}

function ignore(): void {}
