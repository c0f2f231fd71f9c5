import { copyFileSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { prepare } from '../../src/store/migrate.ts'
import { folder } from '../support/folder.ts'

const own = fileURLToPath(new URL('../../src/store/migrations/', import.meta.url))

test('what waited for a suspended identity, by whatever words, is known to wait for it after the upgrade; nothing else is', () => {
  const home = folder()
  const before = join(home, 'before')
  mkdirSync(before)
  for (const name of readdirSync(own)) if (name < '0031') copyFileSync(join(own, name), join(before, name))
  const file = join(home, 'pillarbox.db')
  prepare(file, false, before)
  const old = new DatabaseSync(file)
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
  old.close()
  prepare(file, true)
  const now = new DatabaseSync(file)
  const waiting = now.prepare('SELECT address FROM email_recipients WHERE suspended = 1 ORDER BY position').all()
  now.close()
  expect(waiting.map(({ address }) => address)).toEqual(['wrote', 'sent'])
})
