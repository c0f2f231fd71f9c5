import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore, type Store } from '../../support/open-store.ts'
import { expect, test } from 'vitest'
import { appliance, type Appliance } from '../../support/appliance.ts'
import { card } from '../../support/card.ts'
import { movable } from '../../support/held-clock.ts'

const once = { headers: { 'Idempotency-Key': 'once' } }
const gone = { type: 'not_found', code: 'idempotency_answer_gone', param: 'Idempotency-Key' }

test('an e-mail that is purged is not told again to who repeats the call that sent it', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const at = `/v1/identities/${ada.id}/emails`
  const input = { to: 'postmaster@pillarbox.test', subject: 'canary-subject', body_text: 'canary-body' }
  const first = await box.call('POST', at, input, once)
  const again = await box.call('POST', at, input, once)
  expect([again.status, again.body.id, again.body.body_text]).toEqual([201, first.body.id, first.body.body_text])
  expect(again.body.body_text).toContain('canary-body')
  const email = `${at}/${first.body.id}`
  const [replied, forwarded] = await Promise.all(
    (['reply', 'forward'] as const).map(async (how) => {
      const body = { body_text: 'canary-answer', ...(how === 'forward' ? { to: 'abuse@pillarbox.test' } : {}) }
      const repeat = () => box.call('POST', `${email}/${how}`, body, once)
      return { id: (await repeat()).body.id as string, repeat }
    }),
  )

  // in the trash it is as good as gone, until it is restored
  await box.call('DELETE', email)
  expect((await box.call('POST', at, input, once)).body.error).toMatchObject(gone)
  expect((await box.call('POST', `${email}/restore`, {}, once)).status).toBe(200)
  expect((await box.call('POST', at, input, once)).body.id).toBe(first.body.id)

  await box.call('DELETE', `${email}?purge=true`)
  for (const { id } of [replied!, forwarded!]) await box.call('DELETE', `${at}/${id}?purge=true`)
  for (const repeat of [
    () => box.call('POST', at, input, once),
    () => box.call('POST', `${email}/restore`, {}, once),
    replied!.repeat,
    forwarded!.repeat,
  ]) {
    const told = await repeat()
    expect([told.status, told.body.error]).toMatchObject([404, gone])
    expect(JSON.stringify(told.body)).not.toContain('canary')
  }
})

test('a text message that is purged is not told again, and no answer about it is left in a file', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
  const at = `/v1/identities/${ada.id}/sms`
  const input = { to: '+15550100123', body: 'canary-of-a-text' }
  const { body: sent } = await box.call('POST', at, input, once)
  const injected = { from: '+15550100124', to: ada.phone_number, body: 'canary-of-another' }
  const { body: came } = await box.call('POST', '/v1/sms/loopback/inject', injected, once)
  expect((await box.call('POST', '/v1/sms/loopback/inject', injected, once)).body).toMatchObject({
    id: came.id,
    body: injected.body,
  })
  for (const { id } of [sent, came]) await box.call('DELETE', `${at}/${id}?purge=true`)
  expect((await box.call('POST', at, input, once)).body.error).toMatchObject(gone)
  expect((await box.call('POST', '/v1/sms/loopback/inject', injected, once)).body.error).toMatchObject(gone)
  await box.app.stop()
  expect(holding(box, 'canary-of')).toEqual([])
  await box.restart()
})

test('what an identity had made goes with it, from the answers that are kept as well', async () => {
  const box = await appliance()
  const { body: made } = await box.call('POST', '/v1/identities', { metadata: { of: 'canary-metadata' } }, once)
  const at = `/v1/identities/${made.id}`
  const calls: [path: string, body: object][] = [
    ['/v1/identities', { metadata: { of: 'canary-metadata' } }],
    [`${at}/cards`, card({ label: 'canary-card' })],
    [`${at}/totp`, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'canary-service' }],
    [`${at}/events`, { type: 'negative', note: 'canary-note' }],
    ['/v1/agents', { identity_id: made.id, description: 'canary-agent' }],
  ]
  for (const [path, body] of calls) expect((await box.call('POST', path, body, once)).status).toBe(201)
  await box.call('DELETE', at)
  for (const [path, body] of calls) {
    const told = await box.call('POST', path, body, once)
    expect([path, told.status, told.body.error]).toMatchObject([path, 404, gone])
  }
})

test('however many answers are kept of an identity, all of them go, and their room is given back', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { account_id, database } = planted(box)
  database.exec(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1200)
    INSERT INTO idempotency_keys (holder, method, path, idempotency_key, fingerprint, run_id, status, body, identity_id, octets, created_at)
    SELECT '${account_id}//', 'POST', '/x', n, '', '', 201, 'canary', '${ada.id}', 10, '${new Date().toISOString()}' FROM numbers`)
  database.exec(`INSERT INTO plan_use VALUES ('${account_id}', 'storage_bytes', '', 12000, 0)`)
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  const left = (): number =>
    database.prepare("SELECT count(*) AS n FROM idempotency_keys WHERE body = 'canary'").get()!['n'] as number
  await expect.poll(left).toBe(0)
  // our own look may see a commit before the box has heard that it is on disk
  await expect.poll(async () => (await box.call('GET', '/v1/billing/subscription')).body.usage.storage_bytes).toBe(0)
  database.close()
})

test('what is deleted alone is not told again either', async () => {
  const box = await appliance()
  const input = { email: 'canary@elsewhere.test' }
  const { body: made } = await box.call('POST', '/v1/suppressions', input, once)
  await box.call('DELETE', `/v1/suppressions/${made.id}`)
  const told = await box.call('POST', '/v1/suppressions', input, once)
  expect([told.status, told.body.error]).toMatchObject([404, gone])
})

test('answers that are kept take room of their account, until they are a day old or what they tell of goes', async () => {
  const clock = movable()
  const box = await appliance({}, clock)
  const used = async (): Promise<number> => (await box.call('GET', '/v1/billing/subscription')).body.usage.storage_bytes as number
  const metadata = { long: 'x'.repeat(10_000) }
  // what the log keeps of it
  await box.call('POST', '/v1/identities', { name: 'Kim', metadata })
  const logged = await used()
  const { body: one } = await box.call('POST', '/v1/identities', { name: 'Ada', metadata }, once)
  await box.call('POST', '/v1/identities', { name: 'Bob', metadata }, { headers: { 'Idempotency-Key': 'another' } })
  const both = await used()
  expect(both - 3 * logged).toBeGreaterThan(20_000)
  await box.call('DELETE', `/v1/identities/${one.id}`)
  expect(both - (await used())).toBeGreaterThan(10_000)
  clock.ahead = 86_400_000 + 1000
  await box.app.jobs.find(({ name }) => name === 'sweep-idempotency')!.run()
  expect(await used()).toBe(3 * logged)
})

test('an account without room keeps no answers: a repetition is told so, and nothing is done twice', async () => {
  const box = await appliance({ PILLARBOX_LIMITS__STORAGE_BYTES: '1000' })
  const input = { metadata: { long: 'x'.repeat(1200) } }
  expect((await box.call('POST', '/v1/identities', input, once)).status).toBe(201)
  expect((await box.call('POST', '/v1/identities', input, once)).body.error).toMatchObject({
    type: 'conflict',
    code: 'idempotency_answer_not_kept',
  })
  expect((await box.call('GET', '/v1/identities')).body.data).toHaveLength(1)
})

function planted({ directory }: Appliance): { account_id: string; database: Store } {
  const database = openStore(join(directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  return { database, account_id: database.prepare('SELECT account_id FROM api_keys').get()!['account_id'] as string }
}

function holding({ directory }: Appliance, text: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text))
}
