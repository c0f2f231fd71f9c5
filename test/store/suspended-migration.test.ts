import { expect, test } from 'vitest'
import { upgraded } from '../support/upgraded.ts'

test('what waited for a suspended identity, by whatever words, is known to wait for it after the upgrade; nothing else is', () => {
  const now = upgraded('0031', (old) => {
    // the recipients alone
    old.exec('PRAGMA foreign_keys = OFF')
    const recipient = old.prepare(
      "INSERT INTO email_recipients (email_id, position, field, address, status, response) VALUES ('e', ?, 'to', ?, ?, ?)",
    )
    const each: [address: string, status: string, response: string | null][] = [
      ['wrote', 'deferred', 'the identity that wrote it is suspended'],
      ['sent', 'deferred', 'the identity that sent it is suspended'],
      ['busy', 'deferred', 'Later'],
      ['gone', 'failed', 'the identity that wrote it is suspended'],
      ['new', 'queued', null],
    ]
    for (const [position, one] of each.entries()) recipient.run(position, ...one)
  })
  const waiting = now.prepare('SELECT address FROM email_recipients WHERE suspended = 1 ORDER BY position').all()
  expect(waiting.map(({ address }) => address)).toEqual(['wrote', 'sent'])
})
