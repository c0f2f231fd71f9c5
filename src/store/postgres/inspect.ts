import { type Database, raw, type ServerReport, sql } from '../database.ts'

/** The oldest server: earlier ones lack what statements need, or are no longer maintained. */
const minServer = 14

export const creation = `CREATE DATABASE … ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0`

/** What a database must have; its row is for `unmetRequirement`. */
export const requirements = `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS name,
    current_setting('server_encoding') AS encoding,
    'B' < 'a' AND lower('Ä') = 'Ä' AS by_bytes, pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS read_only,
    has_schema_privilege(current_schema(), 'CREATE') AS creates, current_schema() AS schema`

/** What is wrong with a database that a box cannot use, as the rest of a sentence about it; undefined when nothing is. */
export function unmetRequirement(row: unknown): string | undefined {
  const found = row as Record<'version' | 'by_bytes' | 'creates', number> &
    Record<'name' | 'encoding' | 'read_only', string> & { schema: string | null }
  if (Math.floor(found.version / 10_000) < minServer)
    return `is served by PostgreSQL ${found.name}; Pillarbox needs ${minServer} or newer.`
  if (found.encoding !== 'UTF8') return `has the encoding ${found.encoding}; Pillarbox needs UTF8. Create another: ${creation}`
  if (found.by_bytes !== 1)
    return `does not compare texts byte by byte, as Pillarbox needs (LOCALE 'C'). Create another: ${creation}`
  if (isStandby(row)) return 'is a standby, which is read-only. Set database.url to the primary.'
  if (found.read_only === 'on') return 'is read-only (default_transaction_read_only).'
  if (found.schema === null || found.creates !== 1)
    return 'does not let its user create tables. GRANT CREATE, USAGE ON SCHEMA public, or make the user its owner.'
  return undefined
}

/** True if the server is a standby, which may become the primary. */
export function isStandby(row: unknown): boolean {
  return (row as { standby: number }).standby === 1
}

/** Connections to the server, to the database and of the user, where they have a limit. Some of the server's are for superusers. */
const connections = sql`
  SELECT 'max_connections' AS name, sum(numbackends) AS used, CASE WHEN (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
      THEN current_setting('max_connections')::int ELSE current_setting('max_connections')::int
      - current_setting('superuser_reserved_connections')::int - coalesce(current_setting('reserved_connections', true)::int, 0) END AS max
    FROM pg_stat_database
  UNION ALL SELECT 'the CONNECTION LIMIT of the database', numbackends, datconnlimit
    FROM pg_database INNER JOIN pg_stat_database ON pg_stat_database.datid = pg_database.oid
    WHERE pg_database.datname = current_database() AND datconnlimit >= 0
  UNION ALL SELECT 'the CONNECTION LIMIT of its user', (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user), rolconnlimit
    FROM pg_roles WHERE rolname = current_user AND rolconnlimit >= 0 AND NOT rolsuper`

const settings = sql`SELECT version() AS program, current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS committing,
  current_setting('synchronous_standby_names') AS synchronous`

/** Copies that are being made of the server are no standbys. The state is null for users without `pg_monitor`. */
const standbys = sql`SELECT coalesce(nullif(application_name, ''), 'unnamed') AS name, state, sync_state FROM pg_stat_replication
  WHERE state IS NULL OR state <> 'backup' ORDER BY name`

/** The `sync_state` of standbys that a COMMIT waits for. */
const waitedFor = new Set(['sync', 'quorum'])

/** Looks at the server of an open database. */
export async function inspectServer(
  database: Pick<Database, 'all' | 'get' | 'transaction'>,
  readsCommitted: () => Promise<boolean>,
): Promise<ServerReport> {
  const { isolation, required } = await database.transaction(async (tx) => {
    const found = await tx.get<{ isolation: string }>(sql`SELECT current_setting('transaction_isolation') AS isolation`)
    return { isolation: found!.isolation, required: await tx.get(sql`${raw(requirements)}`) }
  })
  const said = await database.get<Record<'program' | 'fsync' | 'committing' | 'synchronous', string>>(settings)
  const replicas = await database.all<{ name: string; state: string | null; sync_state: string | null }>(standbys)
  const limits = await database.all<{ name: string; used: number; max: number }>(connections)
  const known = replicas.every(({ sync_state }) => sync_state !== null)
  const waits = said!.synchronous !== '' && known && !replicas.some(({ sync_state }) => waitedFor.has(sync_state!))
  return {
    program: said!.program.split(/ on |,/)[0]!,
    problem: unmetRequirement(required),
    // it writes, which has no end while there is no standby that is waited for
    readsCommitted: waits ? undefined : await readsCommitted(),
    isolation,
    fsync: said!.fsync === 'on',
    commit: said!.committing,
    synchronous: said!.synchronous,
    standbys: known ? replicas.map(({ name, sync_state }) => ({ name, synchronous: waitedFor.has(sync_state!) })) : undefined,
    connections: limits.map(({ name, used, max }) => ({ limit: name, used, max })),
  }
}
