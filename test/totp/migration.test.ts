import { expect, test } from 'vitest'
import { upgraded } from '../support/upgraded.ts'

test('secrets that were kept beside their entries are kept apart after the migration, each with its own', () => {
  const database = upgraded('0012', (old) => {
    const put = old.prepare(
      `INSERT INTO totp_entries (seq, id, account_id, identity_id, service_name, algorithm, digits, period, secret, created_at)
        VALUES (?, ?, 'acct', 'ident', 'X', 'SHA1', 6, 30, ?, '2026')`,
    )
    for (const seq of [3, 7, 8]) put.run(seq, `totp_${seq}`, Buffer.alloc(38, seq))
  })
  const rows = database.prepare('SELECT id, secret FROM totp_entries JOIN totp_secrets ON slot = secret_slot ORDER BY seq').all()
  expect(rows.map(({ id, secret }) => [id, Buffer.from(secret as Uint8Array).toString('hex')])).toEqual(
    [3, 7, 8].map((seq) => [`totp_${seq}`, Buffer.alloc(38, seq).toString('hex')]),
  )
  const columns = database.prepare(`SELECT name FROM pragma_table_info('totp_entries')`).all()
  expect(columns.map(({ name }) => name)).not.toContain('secret')
})
