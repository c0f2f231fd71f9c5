import { expect, test } from 'vitest'
import { type Appliance, deliver, message } from '../../support/appliance.ts'
import { live } from '../../support/live.ts'
import { signIn, withPassword } from '../../support/people.ts'
import { addedDomain, publish } from '../../support/verified-domain.ts'
import { severalBoxes } from './boxes.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'

const postgres = serverOfFile()

/** Milliseconds in which a change of one box is known to the others. */
const soon = { timeout: 1000 }

async function statusOf(box: Appliance, key: string): Promise<number> {
  return (await box.call('GET', '/v1/identities', undefined, { key })).status
}

async function statusIn(box: Appliance, { cookie }: { cookie: string }): Promise<number> {
  const headers = { Cookie: cookie, Origin: box.url }
  return (await box.call('GET', '/v1/session', undefined, { key: null, headers })).status
}

test('of two boxes that both know a key, the other refuses it within a second after one has revoked or rotated it', async () => {
  const boxes = await severalBoxes(postgres())
  const [one, other] = boxes
  for (const change of ['revoked', 'rotated']) {
    const { body } = await one.call('POST', '/v1/api-keys', { label: change, scopes: ['identities:read'] })
    for (const box of boxes) expect(await statusOf(box, body.key)).toBe(200)
    if (change === 'revoked') await one.call('DELETE', `/v1/api-keys/${body.id}`)
    else await one.call('POST', `/v1/api-keys/${body.id}/rotate`, { grace_seconds: 0 })
    await expect.poll(() => statusOf(other, body.key), soon).toBe(401)
    await expect.poll(() => statusOf(one, body.key), soon).toBe(401)
  }
})

test('of two boxes one closes the sockets of a key that the other has revoked, and no others', async () => {
  const [one, other] = await severalBoxes(postgres())
  const socketOf = async (label: string): Promise<{ id: string; socket: Awaited<ReturnType<typeof live>> }> => {
    const { body: made } = await one.call('POST', '/v1/api-keys', { label, scopes: ['messages:read'] })
    const { body } = await other.call('POST', '/v1/realtime/token', {}, { key: made.key })
    return { id: made.id, socket: await live(`${other.url.replace(/^http/, 'ws')}/v1/realtime?token=${body['token']}`) }
  }
  const [kept, ended] = [await socketOf('kept'), await socketOf('ended')]
  await one.call('DELETE', `/v1/api-keys/${ended.id}`)
  expect(await ended.socket.closed).toMatchObject({ code: 4401 })
  kept.socket.say({ type: 'ping' })
  await kept.socket.until('pong')
})

test('of two boxes the other knows that a session has ended, and that an account is stopped and resumed', async () => {
  const [one, other] = await severalBoxes(postgres())
  await withPassword(one)
  const [first, second] = [await signIn(one), await signIn(one)]
  for (const browser of [first, second]) expect(await statusIn(other, browser)).toBe(200)
  expect((await first.call('POST', '/v1/account/stop', {})).status).toBe(200)
  await expect.poll(() => statusOf(other, other.key), soon).toBe(403)
  expect((await first.call('POST', '/v1/account/resume', {})).status).toBe(200)
  await expect.poll(() => statusOf(other, other.key), soon).toBe(200)
  expect((await first.call('DELETE', '/v1/session')).status).toBe(200)
  await expect.poll(() => statusIn(other, first), soon).toBe(401)
  expect(await statusIn(other, second)).toBe(200)
})

test('of two boxes the other takes mail for a domain that one has verified, and none for one that is deleted', async () => {
  const [one, other] = await severalBoxes(postgres())
  const mail = { to: 'ada@new.test', raw: message({ To: 'ada@new.test', Subject: 'hello' }, 'hello') }
  expect(await deliver(other.smtp, mail)).toMatch(/^550/)
  const domain = await addedDomain(one, 'new.test')
  const { body: ada } = await one.call('POST', '/v1/identities', { name: 'Ada', email_username: 'ada', email_domain: 'new.test' })
  await expect.poll(() => deliver(other.smtp, mail), { timeout: 10_000 }).toMatch(/^250/)
  const { body: emails } = await one.call('GET', `/v1/identities/${ada.id}/emails`)
  expect(emails.data).toMatchObject([{ subject: 'hello' }])
  // also who is to have a name there
  expect(
    (await other.call('POST', '/v1/identities', { name: 'Bob', email_username: 'bob', email_domain: 'new.test' })).status,
  ).toBe(201)
  const { body: all } = await one.call('GET', '/v1/identities')
  for (const { id } of all.data) await one.call('DELETE', `/v1/identities/${id}`)
  expect((await one.call('DELETE', `/v1/domains/${domain.id}`)).status).toBe(200)
  await expect
    .poll(
      async () =>
        (await other.call('POST', '/v1/identities', { name: 'Eve', email_username: 'eve', email_domain: 'new.test' })).status,
      { timeout: 1000 },
    )
    .not.toBe(201)
})

test('of two boxes the other signs with the DKIM keys that one has made active', async () => {
  const [one, other] = await severalBoxes(postgres())
  const domain = await addedDomain(one, 'new.test')
  const { body: ada } = await one.call('POST', '/v1/identities', { name: 'Ada', email_username: 'ada', email_domain: 'new.test' })
  const selectors = async (): Promise<string[]> => {
    const sent = await other.call('POST', `/v1/identities/${ada.id}/emails`, { to: ['ada@new.test'], subject: 'x', body: 'y' })
    expect(sent.status).toBeLessThan(300)
    const { body } = await other.call<string>('GET', `/v1/identities/${ada.id}/emails/${sent.body.id}/raw`)
    return [...body.matchAll(/\bs=(pb\w+)/g)].map(([, selector]) => selector!)
  }
  await expect.poll(selectors, { timeout: 5000 }).toHaveLength(2)
  const before = await selectors()
  publish(one.dns, domain)
  expect((await one.call('POST', `/v1/domains/${domain.id}/dkim/rotate`)).status).toBe(200)
  await expect.poll(selectors, { timeout: 5000 }).not.toEqual(before)
  expect((await selectors()).filter((selector) => before.includes(selector))).toEqual([])
})

test('of two boxes the other shows nothing of an e-mail that one has deleted', async () => {
  const [one, other] = await severalBoxes(postgres())
  const { body: ada } = await one.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(one.smtp, { to: ada.email, raw: message({ To: ada.email, Subject: 'secret' }, 'secret') })
  const since = new Date(Date.now() - 60_000).toISOString()
  const waited = async (): Promise<unknown> =>
    (await other.call('GET', `/v1/identities/${ada.id}/wait?timeout=1&since=${since}`)).body['item']
  expect(await waited()).toMatchObject({ subject: 'secret' })
  const { body: emails } = await one.call('GET', `/v1/identities/${ada.id}/emails`)
  expect((await one.call('DELETE', `/v1/identities/${ada.id}/emails/${emails.data[0].id}`)).status).toBe(200)
  await expect.poll(waited, { timeout: 5000 }).toBeFalsy()
})

test('what is cached counts only for a while after the last look for changes of others', async () => {
  const target = await emptyDatabase(postgres(), 'looks')
  await preparePostgres(target, false)
  const [one, other] = await Promise.all([opened(target, { shared: true }), opened(target, { shared: true })])
  const dropped: string[] = []
  const { caches } = one.database
  caches.onInvalid('keys', () => void dropped.push('keys'))
  caches.onInvalid('domains', () => void dropped.push('domains'))
  expect(caches.valid).toBe(false)
  // what was cached before the first look may have changed meanwhile
  await one.database.poll(0, 1)
  expect([caches.valid, dropped.splice(0)]).toEqual([true, ['keys', 'domains']])
  await other.database.transaction((tx) => other.database.caches.invalidate(tx, 'domains'))
  await one.database.transaction((tx) => caches.invalidate(tx, 'keys'))
  await one.database.poll(0, 1)
  await one.database.poll(0, 1)
  expect(dropped.splice(0)).toEqual(['domains'])
  await expect.poll(() => caches.valid, { timeout: 5000 }).toBe(false)
  // a change that was not committed is none
  await other.database
    .transaction(async (tx) => {
      await other.database.caches.invalidate(tx, 'keys')
      throw new Error('no')
    })
    .catch(() => {})
  await one.database.poll(0, 1)
  expect([caches.valid, dropped]).toEqual([true, []])
})

test('a change counts as known only when what was cached has been dropped', async () => {
  const target = await emptyDatabase(postgres(), 'drops')
  await preparePostgres(target, false)
  const [one, other] = await Promise.all([opened(target, { shared: true }), opened(target, { shared: true })])
  await one.database.poll(0, 1)
  let [dropped, fails] = [0, true]
  one.database.caches.onInvalid('domains', () => {
    if (fails) throw new Error('not now')
    dropped += 1
  })
  await other.database.transaction((tx) => other.database.caches.invalidate(tx, 'domains'))
  await expect(one.database.poll(0, 1)).rejects.toThrow('not now')
  await expect(one.database.poll(0, 1)).rejects.toThrow('not now')
  fails = false
  await one.database.poll(0, 1)
  await one.database.poll(0, 1)
  expect(dropped).toBe(1)
})
