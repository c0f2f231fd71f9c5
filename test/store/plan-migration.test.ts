import { expect, test } from 'vitest'
import { upgraded } from '../support/upgraded.ts'

test('a box that was there before plans begins with what it keeps and has sent', () => {
  const now = upgraded('0011', (old) => {
    const identity = old.prepare(
      `INSERT INTO identities (id, account_id, name, name_key, email, date_of_birth, status, metadata, stored_bytes, created_at, updated_at)
        VALUES (?, ?, ?, ?, '', '', ?, '{}', ?, '', '')`,
    )
    const each: [id: string, account: string, status: string, octets: number][] = [
      ['ada', 'one', 'active', 100],
      ['bob', 'one', 'suspended', 20],
      ['kim', 'one', 'deleted', 7],
      ['eve', 'two', 'active', 3],
    ]
    for (const [id, account, status, octets] of each) identity.run(id, account, id, id, status, octets)
    const email = old.prepare(
      `INSERT INTO emails (id, identity_id, thread_id, direction, status, from_address, from_name, to_text, subject, snippet, read, spam, automated,
        labels, size, has_attachments, codes, received_at, created_at, detail, trace, raw_id, body_id)
        VALUES (?, ?, '', ?, ?, '', '', '', '', '', 1, 0, 0, '[]', 1, 0, '[]', ?, ?, '{}', '', 1, 1)`,
    )
    const mails: [owner: string, direction: string, status: string, at: string][] = [
      ['ada', 'outbound', 'delivered', '2026-11-30T23:59:59.999Z'],
      ['bob', 'outbound', 'bounced', '2026-11-02T00:00:00.000Z'],
      ['ada', 'outbound', 'cancelled', '2026-11-02T00:00:00.000Z'],
      ['ada', 'inbound', 'received', '2026-11-02T00:00:00.000Z'],
      ['ada', 'outbound', 'delivered', '2026-12-01T00:00:00.000Z'],
      ['eve', 'outbound', 'delivered', '2026-12-01T00:00:00.000Z'],
    ]
    for (const [index, [owner, direction, status, at]] of mails.entries())
      email.run(`e${index}`, owner, direction, status, at, at)
    const sms = old.prepare(
      `INSERT INTO sms (id, account_id, identity_id, direction, status, sender, recipient, body, read, provider, segments, codes, received_at, created_at)
        VALUES (?, 'one', 'ada', ?, 'sent', '', '', '', 1, 'x', 1, '[]', ?, ?)`,
    )
    for (const [id, direction] of [
      ['s1', 'outbound'],
      ['s2', 'inbound'],
    ] as const) {
      sms.run(id, direction, '2026-11-20T00:00:00.000Z', '2026-11-20T00:00:00.000Z')
    }
    old.exec(
      `INSERT INTO sms_media (sms_id, position, content_type, status, size) VALUES ('s2', 0, '', 'kept', 1000), ('s2', 1, '', 'failed', NULL)`,
    )
  })
  const uses = now
    .prepare('SELECT account_id, what, period, used FROM plan_use')
    .all()
    .map((row) => Object.values(row).join(' '))
  expect(uses.toSorted()).toEqual([
    'one emails_sent 2026-11 2',
    'one emails_sent 2026-12 1',
    'one sms_sent 2026-11 1',
    // 256 for each text message, and 2 for its codes, which are []
    'one storage_bytes  1636',
    'two emails_sent 2026-12 1',
    'two storage_bytes  3',
  ])
  expect(now.prepare(`SELECT media_bytes FROM identities WHERE id = 'ada'`).get()).toEqual({ media_bytes: 1516 })
})
