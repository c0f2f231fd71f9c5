import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { prepare } from '../../src/store/migrate.ts'
import { folder } from '../support/folder.ts'

const migrations = fileURLToPath(new URL('../../src/store/migrations/', import.meta.url))

test('secrets that were kept beside their entries are kept apart after the migration, each with its own', () => {
  const [before, file] = [folder(), join(folder(), 'box.db')]
  for (const name of readdirSync(migrations).filter((one) => one < '0012')) cpSync(join(migrations, name), join(before, name))
  prepare(file, false, before)
  const old = new DatabaseSync(file)
  const put = old.prepare(
    `INSERT INTO totp_entries (seq, id, account_id, identity_id, service_name, algorithm, digits, period, secret, created_at)
      VALUES (?, ?, 'acct', 'ident', 'X', 'SHA1', 6, 30, ?, '2026')`,
  )
  for (const seq of [3, 7, 8]) put.run(seq, `totp_${seq}`, Buffer.alloc(38, seq))
  old.close()

  prepare(file, true)
  const database = new DatabaseSync(file, { readOnly: true })
  const rows = database.prepare('SELECT id, secret FROM totp_entries JOIN totp_secrets ON totp_seq = seq ORDER BY seq').all()
  expect(rows.map(({ id, secret }) => [id, Buffer.from(secret as Uint8Array).toString('hex')])).toEqual(
    [3, 7, 8].map((seq) => [`totp_${seq}`, Buffer.alloc(38, seq).toString('hex')]),
  )
  const columns = database.prepare(`SELECT name FROM pragma_table_info('totp_entries')`).all()
  expect(columns.map(({ name }) => name)).not.toContain('secret')
  database.close()
})
