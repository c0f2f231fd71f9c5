import { join } from 'node:path'
import { openStore } from '../../support/open-store.ts'
import { expect, test } from 'vitest'
import { accountKey } from '../../support/account-key.ts'
import { deliver, message } from '../../support/appliance.ts'
import { linesOf, patient } from '../../support/checkup.ts'
import { succeed } from '../../support/program.ts'

test('an identity of another account that has a name of the operator is named; done as told, its mail comes to the operator', async () => {
  const { box } = await patient()
  expect(await linesOf(box, 'operator_names')).toMatchObject([{ status: 'pass', subject: 'all', fix: null }])
  // as one was made before the names were the operator's
  const { id: account } = await box.app.accounts.add({
    name: 'Mallory',
    email: 'mallory@example.com',
    password: 'a long and quiet evening',
  })
  const key = accountKey(box, account)
  const { body: mallory } = await box.call('POST', '/v1/identities', { name: 'Mallory' }, { key })
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  database.prepare('UPDATE identities SET email = ? WHERE id = ?').run('admin@box.test', mallory.id)
  database.prepare('UPDATE addresses SET address = ? WHERE identity_id = ?').run('admin@box.test', mallory.id)
  database.close()
  await box.call('POST', '/v1/identities', { email_username: 'webmaster' })

  const lines = await linesOf(box, 'operator_names')
  expect(lines).toMatchObject([{ status: 'fail', subject: 'admin@box.test', message: expect.stringContaining(account) }])
  const command = /pillarbox (identity delete \S+ --account \S+ --yes)/.exec(lines[0]!.fix!)![1]!
  await succeed(process.execPath, [join(import.meta.dirname, '../../../src/main.ts'), ...command.split(' ')], { env: box.env })
  expect(await linesOf(box, 'operator_names')).toMatchObject([{ status: 'pass', subject: 'all' }])
  const raw = message({ Subject: 'Validate box.test', 'Message-ID': '<validate@ca.test>' }, 'x\n')
  expect(await deliver(box.smtp, { to: 'admin@box.test', raw })).toMatch(/^250/)
  const { body: list } = await box.call('GET', '/v1/identities?email=postmaster@box.test')
  expect((await box.call('GET', `/v1/identities/${list.data[0].id}/emails`)).body.data).toMatchObject([{ to: 'admin@box.test' }])
})
