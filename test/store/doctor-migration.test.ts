import { expect, test } from 'vitest'
import { upgraded } from '../support/upgraded.ts'

const line = {
  name: 'disk',
  subject: '/data',
  check_name: 'disk',
  place: 7,
  status: 'fail',
  message: 'It is full.',
  fix: null,
  since: '2026-11-01T00:00:00.000Z',
  checked_at: '2026-11-02T00:00:00.000Z',
}

test('after the upgrade the lines of the doctor and the free bytes of the disk are those of the only box', () => {
  const now = upgraded('0069', (old) => {
    old
      .prepare(`INSERT INTO doctor_lines (${Object.keys(line).join(', ')}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
      .run(...Object.values(line))
    old.exec(`INSERT INTO doctor_free (at, free) VALUES ('2026-11-02T00:00:00.000Z', 4096)`)
  })
  expect(now.prepare('SELECT * FROM doctor_lines').all()).toEqual([{ ...line, box: '' }])
  expect(now.prepare('SELECT * FROM doctor_free').all()).toEqual([{ at: '2026-11-02T00:00:00.000Z', free: 4096, box: '' }])
})
