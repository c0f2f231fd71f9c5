import { expect, test } from 'vitest'
import { upgraded } from '../support/upgraded.ts'

const suffix = '01kb4x3v7ce9s8q2m5n6p7r8t9'

test('whoever held an account is its owner after the upgrade, with password, second factor, sessions and known networks', () => {
  const now = upgraded('0053', (old) => {
    old
      .prepare(
        `INSERT INTO logins (account_id, email, email_folded, password, second_factor, confirmed_at, last_step, changed_at)
          VALUES (?, 'Ada@example.com', 'ada@example.com', 'hash', x'01', '2026-01-01T00:00:00.000Z', 7, '2026-01-02T00:00:00.000Z')`,
      )
      .run(`acct_${suffix}`)
    old.exec(`INSERT INTO recovery_codes VALUES ('acct_${suffix}', 'code');
      INSERT INTO sign_in_networks VALUES ('acct_${suffix}', '192.0.2.7', '2026-01-01T00:00:00.000Z');
      INSERT INTO sessions (id, account_id, hash, ip, user_agent, created_at, last_used_at) VALUES ('sess_1', 'acct_${suffix}', 'h', '', '', '', '')`)
  })
  const id = `person_${suffix}`
  expect(now.prepare('SELECT * FROM logins').all()).toMatchObject([
    { id, account_id: `acct_${suffix}`, role: 'owner', email: 'Ada@example.com', password: 'hash', last_step: 7 },
  ])
  for (const table of ['recovery_codes', 'sign_in_networks', 'sessions']) {
    expect([table, now.prepare(`SELECT person_id FROM ${table}`).all()]).toMatchObject([table, [{ person_id: id }]])
  }
})
