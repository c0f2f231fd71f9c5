import { expect, test } from 'vitest'
import { upgraded } from '../support/upgraded.ts'

test('the upgrade removes the statistics by which a box that held little chose to read whole tables', () => {
  const now = upgraded('0036', (old) => {
    old.exec("INSERT INTO sms_seen (provider, provider_id, seen_at) VALUES ('loopback', '1', '')")
    old.exec('ANALYZE')
    expect(old.prepare('SELECT count(*) AS n FROM sqlite_stat1').get()).not.toEqual({ n: 0 })
  })
  const statistics = now.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite!_stat%' ESCAPE '!'").all()
  expect(statistics).toEqual([])
})
