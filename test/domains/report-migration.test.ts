import { expect, test } from 'vitest'
import { upgraded } from '../support/upgraded.ts'

test('stored reports keep their order and content, and have the domain that sent them in their key after the migration', () => {
  const senders = [null, 'evil.test', 'mail.a.evil.co', 'local']
  const database = upgraded('0037', (old) => {
    const put = old.prepare(
      `INSERT INTO domain_reports (seq, domain_id, kind, reporter, report_id, verified, received_at, data)
        VALUES (?, 'dom', 'dmarc', 'r', ?, ?, '2026', ?)`,
    )
    for (const [index, verified_domain] of senders.entries())
      put.run(3 * index + 2, `${index}`, verified_domain === null ? 0 : 1, JSON.stringify({ pass: index, verified_domain }))
  })
  const rows = database.prepare('SELECT seq, report_id, sender, site, data FROM domain_reports ORDER BY seq').all()
  expect(rows.map((row) => ({ ...row }))).toEqual(
    senders.map((verified_domain, index) => ({
      seq: 3 * index + 2,
      report_id: `${index}`,
      sender: verified_domain ?? '',
      site: ['', 'evil.test', 'evil.co', 'local'][index],
      data: JSON.stringify({ pass: index, verified_domain }),
    })),
  )
})
