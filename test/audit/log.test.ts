import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { day } from '../../src/core/clock.ts'
import { type Appliance, appliance, deliver, message } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { connect } from '../support/mcp-clients.ts'
import { attempt, person, signIn, withPassword } from '../support/people.ts'
import { greeted, newKey, office, plain, submit } from '../support/submission.ts'
import { HeldClock } from '../support/held-clock.ts'
import { reportOf } from './report.ts'

interface Row {
  seq: number
  account_id: string
  actor: string
  client: string | null
  address: string | null
  action: string
  target: string | null
  identity_id: string | null
  count: number
  detail: Record<string, unknown>
  hash: string
}

const file = (box: Appliance): string => join(box.directory, 'data', 'pillarbox.db')

/** The rows as the API lists them, the oldest first; but for those of this list. */
async function listed(box: Appliance, query = '', path = '/v1/audit'): Promise<Row[]> {
  const { status, body } = await box.call<{ data: Row[] }>('GET', `${path}?limit=200&${query}`)
  expect(status).toBe(200)
  return body.data.filter(({ action }) => action !== 'audit.listed').toReversed()
}

/** The same, once there are so many rows of this action. */
async function found(box: Appliance, action: string, count = 1): Promise<Row[]> {
  for (let tries = 0; tries < 80; tries += 1) {
    const rows = await listed(box, `action=${action}`)
    if (rows.length >= count) return rows
    await sleep(50)
  }
  throw new Error(`There are too few rows of ${action}`)
}

async function keyFor(box: Appliance, input: Record<string, unknown>): Promise<{ id: string; key: string }> {
  const { body } = await box.call('POST', '/v1/api-keys', input)
  return { id: body['id'] as string, key: body['key'] as string }
}

/** An identity with a message that has a code. */
async function withMail(box: Appliance): Promise<{ id: string; at: string; email: string }> {
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const at = `/v1/identities/${ada.id}`
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Welcome' }, 'Your verification code is 493817.') })
  const { body: mail } = await box.call('GET', `${at}/emails`)
  return { id: ada.id, at, email: mail.data[0].id }
}

test('says who did what, from where, to what', async () => {
  const box = await appliance()
  const { id: keyId, key } = await keyFor(box, { label: 'reader', scopes: ['messages:read'] })
  const { id, at, email } = await withMail(box)
  await box.call('GET', `${at}/emails/${email}`, undefined, { key })
  expect(await found(box, 'email.read')).toMatchObject([
    { actor: keyId, client: null, address: '127.0.0.1', target: email, identity_id: id, count: 1, detail: {} },
  ])
  expect(await listed(box, 'action=key.created')).toMatchObject([
    { target: keyId, identity_id: null, detail: { fields: ['label', 'scopes'], scopes: ['messages:read'] } },
  ])
  // what a start does has no caller
  expect(await found(box, 'box.started')).toMatchObject([{ actor: 'operator', client: null, address: null }])
  expect((await listed(box)).every(({ hash }) => /^[0-9a-f]{64}$/.test(hash))).toBe(true)
  expect(reportOf(file(box)).valid).toBe(true)
})

test('is filtered by actor, action, identity and time, and read page by page', async () => {
  const box = await appliance()
  const { id: keyId, key } = await keyFor(box, { scopes: ['identities:write', 'identities:read'] })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' }, { key })
  await box.call('PATCH', `/v1/identities/${ada.id}`, { metadata: { a: 'b' } }, { key })
  await box.call('POST', '/v1/identities', { name: 'Bob' })
  const actions = async (query: string): Promise<string[]> => (await listed(box, query)).map(({ action }) => action)
  expect(await actions(`actor=${keyId}`)).toEqual(['identity.created', 'identity.changed'])
  expect(await actions('action=identity.*')).toEqual(['identity.created', 'identity.changed', 'identity.created'])
  expect(await actions(`identity_id=${ada.id}`)).toEqual(['identity.created', 'identity.changed'])
  expect(await actions(`identity_id=${ada.id}&action=identity.changed`)).toEqual(['identity.changed'])
  expect(await actions('before=2020-01-01')).toEqual([])
  expect(await actions('after=2100-01-01')).toEqual([])
  expect((await box.call('GET', '/v1/audit?action=x')).body.error).toMatchObject({ param: 'action', code: 'invalid_value' })
  const pages: number[] = []
  for (let cursor = ''; ;) {
    const { body } = await box.call('GET', `/v1/audit?limit=2&action=identity.*${cursor}`)
    pages.push(body.data.length)
    if (!body['has_more']) break
    cursor = `&cursor=${String(body['next_cursor'])}`
  }
  expect(pages).toEqual([2, 1])
})

test('needs audit:read, which no key that is bound to an identity can have', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const others = await keyFor(box, { scopes: ['account:read', 'account:write', 'messages:read'] })
  expect((await box.call('GET', '/v1/audit', undefined, { key: others.key })).body.error).toMatchObject({
    code: 'insufficient_scope',
  })
  const own = await keyFor(box, { scopes: ['audit:read'] })
  expect((await box.call('GET', '/v1/audit', undefined, { key: own.key })).status).toBe(200)
  // it cannot be given
  const input = { scopes: ['audit:read', 'messages:read'], identity_id: ada.id }
  expect((await box.call('POST', '/v1/api-keys', input)).body.error).toMatchObject({ type: 'invalid_request', param: 'scopes' })
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: ada.id })
  expect(bound['scopes']).not.toContain('audit:read')
  expect(bound['scopes']).toContain('account:read')
  // and where a key has it all the same, nothing is listed
  {
    using database = openStore(file(box), { timeout: 60_000 })
    database.prepare('UPDATE api_keys SET scopes = ? WHERE id = ?').run('["audit:read"]', bound['id'])
  }
  await box.restart()
  expect((await box.call('GET', '/v1/audit', undefined, { key: bound['key'] })).body.error).toMatchObject({ code: 'bound_key' })
  // who tried is in it
  expect(await found(box, 'call.refused', 2)).toMatchObject([
    { actor: others.id, detail: { call: 'audit.listed', code: 'insufficient_scope' } },
    { actor: bound['id'], detail: { call: 'audit.listed', code: 'bound_key' } },
  ])
})

test('each account sees its own rows, and the operator all of them', async () => {
  const box = await appliance()
  const { id } = await box.app.accounts.add({ name: 'Grace', email: 'grace@example.com', password: person.password })
  const grace = await signIn(box, { email: 'grace@example.com', password: person.password })
  await grace.call('POST', '/v1/identities', { name: 'Hopper' })
  const hers = (await grace.call<{ data: Row[] }>('GET', '/v1/audit')).body.data
  expect(hers.map(({ action, account_id }) => [action, account_id])).toEqual([
    ['identity.created', id],
    ['session.created', id],
  ])
  expect((await listed(box)).filter(({ account_id }) => account_id === id)).toEqual([])
  expect((await listed(box, '', '/v1/audit/box')).filter(({ account_id }) => account_id === id)).toHaveLength(2)
  expect((await grace.call('GET', '/v1/audit/box')).body.error).toMatchObject({ code: 'operator_only' })
})

test('has sign-ins and those that failed, by their address, without what was typed', async () => {
  const box = await appliance()
  await withPassword(box)
  await attempt(box, { ...person, password: 'a password that is wrong' })
  await attempt(box, { email: 'nobody@example.com', password: 'a password that is wrong' })
  const ada = await signIn(box)
  expect((await found(box, 'sign_in.failed', 2)).map(({ actor, address, detail }) => ({ actor, address, detail }))).toEqual([
    { actor: 'anonymous', address: '127.0.0.1', detail: { code: 'invalid_credentials' } },
    { actor: 'anonymous', address: '127.0.0.1', detail: { code: 'invalid_credentials' } },
  ])
  const { body: me } = await ada.call('GET', '/v1/session')
  const [session] = await listed(box, 'action=session.created')
  expect(session).toMatchObject({ actor: me.person.id, address: '127.0.0.1', detail: { second_factor: false } })
  // what a person does is in the log as theirs, whatever their session
  await ada.call('POST', '/v1/account/password', {
    current_password: 'wrong as well, and long',
    password: 'a new and long password',
  })
  expect(await found(box, 'call.refused')).toMatchObject([
    { actor: me.person.id, detail: { call: 'password.changed', code: 'wrong_password' } },
  ])
  await ada.call('DELETE', '/v1/session')
  expect(await listed(box, 'action=session.ended')).toMatchObject([{ actor: me.person.id, target: null }])
})

test('has reads through the tools of an assistant, with its client', async () => {
  const box = await appliance()
  const { id, email } = await withMail(box)
  const bound = await keyFor(box, { scopes: ['messages:read'], identity_id: id })
  const client = await connect('2026-07-28', `${box.url}/mcp`, bound.key)
  await client.call('read_message', { id: email })
  await client.close()
  expect(await found(box, 'email.read')).toMatchObject([
    { actor: bound.id, client: 'mcp', address: '127.0.0.1', target: email, identity_id: id },
  ])
})

test('has the logins of programs by SMTP, and what they sent', async () => {
  const here = await office()
  const { box, ada, port } = here
  const own = await newKey(box)
  const narrow = await newKey(box, { scopes: ['messages:read'] })
  const client = await greeted(port('tls'), 'tls')
  for (const key of ['a key that is wrong', narrow.key, own.key]) await client.say(plain('ada@pillarbox.test', key))
  expect(await submit(client, { raw: 'From: ada@pillarbox.test\r\nSubject: Hello\r\n\r\nHi.\r\n' })).toMatch(/^250 /)
  client.destroy()
  const { body: sent } = await box.call('GET', `/v1/identities/${ada}/emails?direction=outbound`)
  const from = { client: 'smtp', address: '127.0.0.1', identity_id: ada }
  expect(await listed(box, 'action=email.sent')).toMatchObject([{ ...from, actor: own.id, target: sent.data[0].id }])
  expect(await found(box, 'smtp_login.accepted')).toMatchObject([{ ...from, actor: own.id, target: ada }])
  expect(await found(box, 'smtp_login.refused', 2)).toMatchObject([
    { ...from, actor: 'anonymous', target: ada },
    { ...from, actor: narrow.id, target: ada },
  ])
})

test('has what was refused of a card, and that it was revealed only when it was', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: stored } = await box.call('POST', `/v1/identities/${ada.id}/cards`, card({ label: 'x', budget_cents: 100 }))
  const reveal = (): ReturnType<Appliance['call']> =>
    box.call('POST', `/v1/cards/${stored.id}/reveal`, { amount_cents: 80 }, { headers: { 'Idempotency-Key': 'once' } })
  expect((await reveal()).status).toBe(200)
  // a repetition shows it again
  expect((await reveal()).status).toBe(200)
  expect((await box.call('POST', `/v1/cards/${stored.id}/reveal`, { amount_cents: 80 })).status).toBe(403)
  expect(await found(box, 'call.refused')).toMatchObject([
    { target: stored.id, detail: { call: 'card.revealed', code: 'budget_exceeded' } },
  ])
  expect(await listed(box, 'action=card.revealed')).toHaveLength(2)
})

test('a repetition of a change is no other change', async () => {
  const box = await appliance()
  const create = (): ReturnType<Appliance['call']> =>
    box.call('POST', '/v1/identities', { name: 'Ada' }, { headers: { 'Idempotency-Key': 'once' } })
  expect([(await create()).status, (await create()).headers.get('idempotency-replayed')]).toEqual([201, 'true'])
  expect(await listed(box, 'action=identity.created')).toHaveLength(1)
})

test('a change that is refused or wrong is not said to have been made', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  expect((await box.call('PATCH', `/v1/identities/${ada.id}`, { name: '' })).status).toBe(400)
  expect((await box.call('DELETE', '/v1/api-keys/key_00000000000000000000000000')).status).toBe(404)
  expect((await listed(box)).map(({ action }) => action).filter((action) => action !== 'box.started')).toEqual([
    'identity.created',
  ])
})

test('has no secret, and nothing of what messages say', async () => {
  const box = await appliance({ PILLARBOX_SMS__PROVIDER: 'loopback' })
  await withPassword(box)
  const { id, at, email } = await withMail(box)
  const { body: made } = await box.call('POST', '/v1/api-keys', { label: 'a label that is private', scopes: ['messages:read'] })
  const { body: hook } = await box.call('POST', '/v1/webhooks', {
    url: 'https://receiver.test/hook?token=private-url',
    events: ['email.received'],
  })
  await box.call('POST', `${at}/totp`, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'Private service' })
  await box.call('POST', `${at}/emails`, { to: 'bob@private.test', subject: 'Private subject', body_text: 'Private words.' })
  await box.call('PATCH', '/v1/senders', { block: ['@private-sender.test'] })
  await box.call('GET', `${at}/emails/search?q=private-search`)
  await box.call('GET', `${at}/emails/${email}`)
  await box.call('GET', `${at}/wait?timeout=0`)
  const ada = await signIn(box)
  await ada.call('POST', '/v1/account/password', { current_password: person.password, password: 'private new password' })
  const { body: token } = await box.call('POST', '/v1/realtime/token', { channels: ['email_messages'] })
  await found(box, 'realtime_token.created')
  using database = openStore(file(box), { readOnly: true })
  const all = JSON.stringify(database.prepare('SELECT * FROM audit').all())
  expect(all).toContain('key.created')
  expect(all).toContain(id)
  for (const secret of [
    box.key,
    made['key'],
    (made['key'] as string).slice(4, 20),
    hook['secret'],
    token['token'],
    ada.cookie.split('=')[1],
    person.password,
    person.email,
    '493817',
    'JBSWY3DP',
    'rivate',
    'Welcome',
    'receiver.test',
  ] as string[]) {
    expect(secret.length).toBeGreaterThan(5)
    expect(all).not.toContain(secret)
  }
})

test('reads that were just made survive a stop', async () => {
  const box = await appliance()
  const { at, email } = await withMail(box)
  for (let n = 0; n < 3; n += 1) await box.call('GET', `${at}/emails/${email}/raw`)
  await box.restart()
  expect((await listed(box, 'action=email.source_read')).map(({ count }) => count)).toEqual([1, 2])
  expect(reportOf(file(box)).valid).toBe(true)
})

test('is kept for 400 days, and what is left stays a chain', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const forget = (): Promise<void> => box.app.jobs.find(({ name }) => name === 'forget-audit')!.run()
  // its row is written a second after the start, with the time of then
  await expect.poll(() => found(box, 'box.started')).toHaveLength(1)
  for (let n = 0; n < 300; n += 1) await box.call('POST', '/v1/suppressions', { email: `${n}@elsewhere.test` })
  clock.advance(200 * day)
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await forget()
  expect(await listed(box, 'action=suppression.created')).toHaveLength(200)
  clock.advance(201 * day)
  await forget()
  expect((await listed(box)).map(({ action }) => action)).toEqual(['identity.created'])
  expect(reportOf(file(box))).toMatchObject({ valid: true, faults: [] })
  const later = async () => {
    clock.advance(3650 * day)
    await forget()
    return reportOf(file(box))
  }
  // so are those of what was read
  await expect.poll(later).toMatchObject({ valid: true, rows: 0 })
  await box.call('POST', '/v1/identities', { name: 'Bob' })
  await box.restart()
  const report = reportOf(file(box))
  expect([report.valid, report.first_seq! > 300]).toEqual([true, true])
})

test('rows of a clock that was ahead go with those before and after them', async () => {
  const clock = new HeldClock()
  const box = await appliance({ PILLARBOX_RETENTION__AUDIT: '30 d' }, clock)
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  clock.advance(400 * day)
  await box.call('POST', '/v1/identities', { name: 'Bob' })
  clock.advance(-400 * day)
  await box.call('POST', '/v1/identities', { name: 'Cid' })
  clock.advance(31 * day)
  await box.app.jobs.find(({ name }) => name === 'forget-audit')!.run()
  expect(await listed(box, 'action=identity.created')).toEqual([])
})

test('retention.audit sets for how long', async () => {
  const clock = new HeldClock()
  const box = await appliance({ PILLARBOX_RETENTION__AUDIT: '30 d' }, clock)
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  clock.advance(31 * day)
  await box.app.jobs.find(({ name }) => name === 'forget-audit')!.run()
  expect(await listed(box, 'action=identity.created')).toEqual([])
})

test('a change whose row cannot be written is not made', async () => {
  const box = await appliance()
  const { body: made } = await box.call('POST', '/v1/api-keys', { scopes: ['messages:read'] })
  {
    using database = openStore(file(box), { timeout: 60_000 })
    database.exec("CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END")
  }
  expect((await box.call('DELETE', `/v1/api-keys/${made['id']}`)).status).toBe(500)
  const { body: keys } = await box.call('GET', '/v1/api-keys')
  expect(keys.data.map(({ id }) => id)).toContain(made['id'])
})
