import { openStore } from '../support/open-store.ts'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { accountKey } from '../support/account-key.ts'
import { appliance, deliver, message } from '../support/appliance.ts'

test('a search is answered while another account’s searches wait', async () => {
  const box = await appliance()
  const key = accountKey(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' }, { key })
  for (const { email } of [ada, bob]) await deliver(box.smtp, { to: email, raw: message({ Subject: 'Hello' }, 'Hello\n') })
  // a mailbox that takes some time to look through
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  const columns = database
    .prepare(`SELECT name FROM pragma_table_info('emails') WHERE name NOT IN ('seq', 'id', 'duplicate_of')`)
    .all()
    .map(({ name }) => name as string)
    .join(', ')
  database
    .prepare(
      `WITH RECURSIVE many (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM many WHERE number < 30000)
        INSERT INTO emails (id, ${columns}) SELECT 'email_' || number, ${columns} FROM many, emails WHERE identity_id = ?`,
    )
    .run(ada.id)
  database.close()
  const answered: string[] = []
  const find = async (name: string, id: string, options: object): Promise<void> => {
    const { status } = await box.call('GET', `/v1/identities/${id}/emails?subject=nothing`, undefined, options)
    answered.push(`${name} ${status}`)
  }
  const flood = Array.from({ length: 40 }, () => find('Ada', ada.id, {}))
  // the first answer is the sign that the others wait
  await Promise.race(flood)
  await find('Bob', bob.id, { key })
  expect(answered.length).toBeLessThan(30)
  expect(answered).toContain('Bob 200')
  await Promise.all(flood)
})
