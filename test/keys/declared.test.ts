import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { prepare } from '../../src/store/migrate.ts'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'

const source = fileURLToPath(new URL('../../src/', import.meta.url))

/** Columns of octets that are not sealed, and why. */
const open: Record<string, string> = {
  'audit.hash': 'a hash',
  'audit_chain.anchor_hash': 'a hash',
  'audit_chain.head_hash': 'a hash',
  'blobs.sha256': 'a hash',
  'blobs.bytes': 'mail and bodies, as they are',
  'blob_pieces.bytes': 'the rest of large ones',
  'card_secrets.encrypted_data': 'encrypted by the client, under a key that the box never has',
  'export_pieces.bytes': 'exports of mail, as it is, until they are removed after a day',
  'outbound_report_counts.key': 'a hash',
  'outbound_report_messages.content': 'reports that are about to be sent to others',
}

test('every column of octets is sealed and said to be, or is known to be open', async () => {
  const box = await appliance()
  const declared = box.app.sealed.map(({ table, column }) => `${table}.${column}`)
  const file = join(folder(), 'box.db')
  prepare(file, false)
  const database = new DatabaseSync(file, { readOnly: true })
  const octets = database
    .prepare(
      `SELECT tables.name || '.' || columns.name AS place FROM pragma_table_list AS tables, pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table' AND columns.type = 'BLOB' AND tables.name NOT LIKE 'sqlite_%'`,
    )
    .all()
    .map(({ place }) => String(place))
  database.close()
  expect(octets.length).toBeGreaterThan(5)
  expect(octets.filter((place) => !declared.includes(place) && !(place in open))).toEqual([])
  expect(declared.filter((place) => place in open)).toEqual([])
})

test('whoever seals says so: what is not declared would be lost with the next change of the master key', () => {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const sealing = files.filter((name) => /\bseal\.seal\(/.test(readFileSync(join(source, name), 'utf8')))
  const declaring = new Set(
    files.filter((name) => /: SealedColumn\b/.test(readFileSync(join(source, name), 'utf8'))).map((name) => dirname(name)),
  )
  expect(sealing.length).toBeGreaterThan(2)
  expect(sealing.map((name) => dirname(name)).filter((name) => !declaring.has(name))).toEqual([])
})
