import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
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

test('a long e-mail is not read for replies whose callers have gone, and these are not sent', async () => {
  const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '0', PILLARBOX_HTTP__ACCOUNT_RATE_LIMIT: '0' })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const lines = randomBytes(3_000_000).toString('base64').replaceAll(/.{76}/g, '$& x\r\n')
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Long', 'Reply-To': ada.email }, `${lines}\r\n`) })
  const { body: list } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  const path = `/v1/identities/${ada.id}/emails/${list.data[0].id}`
  const body = '{"body":"Yes.","allow_unsigned":true}'
  const head = `Host: x\r\nAuthorization: Bearer ${box.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  const { hostname, port } = new URL(box.url)
  const sockets = Array.from({ length: 5 }, () => connect(Number(port), hostname))
  for (const socket of sockets) socket.write(`POST ${path}/reply HTTP/1.1\r\n${head}\r\n${body}`.repeat(8))
  // the first answer is the sign that the others wait
  const [first] = (await Promise.race(sockets.map((socket) => once(socket, 'data')))) as [Buffer]
  expect(first.toString()).toMatch(/^HTTP\/1\.1 201/)
  for (const socket of sockets) socket.destroy()
  // behind them in the turns of its account
  expect((await box.call('GET', path)).status).toBe(200)
  await box.settled()
  const { body: sent } = await box.call('GET', `/v1/identities/${ada.id}/emails?direction=outbound&limit=100`)
  expect(sent.data.length).toBeLessThan(20)
})
