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
  const found = row as Record<'version' | 'by_bytes' | 'standby' | 'creates', number> &
    Record<'name' | 'encoding' | 'read_only', string> & { schema: string | null }
  if (Math.floor(found.version / 10_000) < minServer)
    return `is served by PostgreSQL ${found.name}; Pillarbox needs ${minServer} or newer.`
  if (found.encoding !== 'UTF8') return `has the encoding ${found.encoding}; Pillarbox needs UTF8. Create another: ${creation}`
  if (found.by_bytes !== 1)
    return `does not compare texts byte by byte, as Pillarbox needs (LOCALE 'C'). Create another: ${creation}`
  if (found.standby === 1) return 'is a standby, which is read-only. Set database.url to the primary.'
  if (found.read_only === 'on') return 'is read-only (default_transaction_read_only).'
  if (found.schema === null || found.creates !== 1)
    return 'does not let its user create tables. GRANT CREATE, USAGE ON SCHEMA public, or make the user its owner.'
  return undefined
}
