import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { knownVersion, prepare } from '../../../src/store/migrate.ts'
import { knownPostgresVersion, preparePostgres } from '../../../src/store/postgres/prepare.ts'
import { folder } from '../../support/folder.ts'
import type { PostgresServer } from '../../support/postgres-server.ts'
import { emptyDatabase, server } from './server.ts'

/** A schema, as both engines can say it. */
interface Schema {
  columns: string[]
  keys: string[]
  indexes: string[]
  triggers: string[]
}

test('the schema is the same on both engines: columns, keys, indexes and triggers', async () => {
  const postgres = await server()
  if (!postgres) return
  onTestFinished(() => postgres.close())
  await preparePostgres(await emptyDatabase(postgres, 'parity'), false)
  const file = join(folder(), 'box.db')
  prepare(file, false)
  expect(knownPostgresVersion()).toBe(knownVersion())
  expect(await ofPostgres(postgres)).toEqual(ofSqlite(file))
})

function ofSqlite(file: string): Schema {
  using database = new DatabaseSync(file, { readOnly: true })
  const rows = (query: string): Record<string, string>[] => database.prepare(query).all() as Record<string, string>[]
  const tables = `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'
    AND name NOT LIKE 'emails!_search%' ESCAPE '!'`
  return {
    columns: rows(
      `SELECT t.name AS t, c.name AS c, c.type AS type, c."notnull" OR c.pk > 0 AS needed, coalesce(c.dflt_value, '') AS standard
        FROM (${tables}) AS t, pragma_table_info(t.name) AS c`,
    )
      .map(({ t, c, type, needed, standard }) => `${t}.${c} ${type} ${needed} ${standard}`)
      .toSorted(),
    keys: rows(
      `SELECT t, group_concat(c, ', ') AS keyed, kind FROM (
        SELECT t.name AS t, c.name AS c, 'primary' AS kind, '' AS i FROM (${tables}) AS t, pragma_table_info(t.name) AS c WHERE c.pk > 0
        UNION ALL SELECT t.name, c.name, 'unique', i.name FROM (${tables}) AS t, pragma_index_list(t.name) AS i, pragma_index_info(i.name) AS c
          WHERE i.origin = 'u')
        GROUP BY t, kind, i`,
    )
      .map(({ t, keyed, kind }) => `${t} ${kind} ${keyed!.split(', ').toSorted().join(', ')}`)
      .toSorted(),
    indexes: rows(`SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL`)
      .map(({ sql }) => plain(sql!))
      .toSorted(),
    triggers: rows(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
      .map(({ name }) => name!)
      .toSorted(),
  }
}

async function ofPostgres(at: PostgresServer): Promise<Schema> {
  const rows = (query: string): Promise<Record<string, string>[]> => at.run('parity', query) as Promise<Record<string, string>[]>
  const own = `n.nspname = 'public' AND t.relname NOT IN ('emails_search', 'schema_version')`
  const columns = await rows(
    `SELECT t.relname AS t, c.attname AS c, format_type(c.atttypid, -1) AS type, c.attnotnull::int AS needed,
        coalesce(pg_get_expr(d.adbin, d.adrelid), '') AS standard
      FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace JOIN pg_attribute c ON c.attrelid = t.oid
      LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = c.attnum
      WHERE ${own} AND t.relkind = 'r' AND c.attnum > 0 AND NOT c.attisdropped`,
  )
  const keys = await rows(
    `SELECT t.relname AS t, x.indisprimary::int AS main, (SELECT string_agg(a.attname, ', ' ORDER BY a.attname COLLATE "C") FROM pg_attribute a
        WHERE a.attrelid = t.oid AND a.attnum = ANY (x.indkey)) AS keyed
      FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
      JOIN pg_constraint k ON k.conindid = x.indexrelid AND k.contype IN ('p', 'u') WHERE ${own}`,
  )
  const indexes = await rows(
    `SELECT pg_get_indexdef(x.indexrelid) AS sql FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
      WHERE ${own} AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = x.indexrelid AND k.contype IN ('p', 'u'))`,
  )
  const triggers = await rows(`SELECT tgname AS name FROM pg_trigger WHERE NOT tgisinternal AND tgname NOT LIKE '%emptied'`)
  const types: Record<string, string> = { bigint: 'INTEGER', bytea: 'BLOB', text: 'TEXT' }
  return {
    columns: columns
      .map(({ t, c, type, needed, standard }) => `${t}.${c} ${types[type!]} ${needed} ${standard!.replace(/::\w+$/, '')}`)
      .toSorted(),
    keys: keys.map(({ t, main, keyed }) => `${t} ${Number(main) === 1 ? 'primary' : 'unique'} ${keyed}`).toSorted(),
    indexes: indexes.map(({ sql }) => plain(sql!)).toSorted(),
    triggers: triggers.map(({ name }) => name!).toSorted(),
  }
}

/** The definition of an index without what only one engine writes. */
function plain(sql: string): string {
  return sql
    .replaceAll(/\s+/g, ' ')
    .replaceAll('public.', '')
    .replaceAll('"', '')
    .replace(' USING btree', '')
    .replaceAll(/::(?:text|bigint|integer|numeric|jsonb)(?:\[\])?/g, '')
    .replaceAll(/SUBSTRING\((\w+) FROM (.*?\))\s*\+ 1\)\)/g, 'substr($1, $2 + 1)')
    .replaceAll(/= ANY \(\(?ARRAY\[(.*?)\]\)?\)/g, 'IN ($1)')
    .replaceAll('!~~', 'NOT LIKE')
    .replaceAll(/[()\s]/g, '')
}
