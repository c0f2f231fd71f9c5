import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { OpenTransaction } from '../../src/store/sqlite/transaction.ts'
import { accountKey } from '../support/account-key.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { WebhookSink } from '../support/webhook-sink.ts'

const near = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }
const url = 'http://127.0.0.1:9/hook'

const keyWith = async (box: Appliance, scopes: string[], identity_id?: string): Promise<string> =>
  (await box.call('POST', '/v1/api-keys', { scopes, ...(identity_id ? { identity_id } : {}) })).body['key'] as string

test('a webhook is made, listed, changed and deleted, and its secret is shown once', async () => {
  const box = await appliance(near)
  const { body: made } = await box.call('POST', '/v1/webhooks', {
    url,
    events: ['email.received', 'email.received'],
    description: 'x',
  })
  expect(made).toMatchObject({ url, events: ['email.received'], active: true, identity_id: null, description: 'x', headers: {} })
  const { secret, ...rest } = made
  expect((await box.call('GET', `/v1/webhooks/${made['id']}`)).body).toEqual(rest)
  expect((await box.call('GET', '/v1/webhooks')).body.data).toEqual([rest])
  const changed = await box.call('PATCH', `/v1/webhooks/${made['id']}`, {
    events: ['*'],
    active: false,
    description: null,
    headers: { 'X-Key': 'k' },
  })
  expect(changed.body).toMatchObject({ events: ['*'], active: false, description: null, headers: { 'X-Key': 'k' } })
  expect(JSON.stringify(changed.body)).not.toContain(secret)
  const rotated = await box.call('POST', `/v1/webhooks/${made['id']}/secret/rotate`)
  expect(rotated.status).toBe(200)
  expect(rotated.body['secret']).toMatch(/^whsec_/)
  expect(rotated.body['secret']).not.toBe(secret)
  expect((await box.call('DELETE', `/v1/webhooks/${made['id']}`)).body).toEqual({ id: made['id'], deleted: true })
  for (const [method, path] of [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['GET', '/deliveries'],
    ['POST', '/test'],
    ['POST', '/secret/rotate'],
    ['POST', '/deliveries/dlv_01jd3v8m2ef1pbx9mz5k7q4w6a/redeliver'],
  ] as const) {
    expect((await box.call(method, `/v1/webhooks/${made['id']}${path}`)).status, `${method} ${path}`).toBe(404)
  }
  expect((await box.call('GET', '/v1/webhooks')).body.data).toEqual([])
})

test('secrets and headers do not lie open on disk or in the log', async () => {
  const box = await appliance(near)
  const canaries = ['my-own-secret-canary', 'header-canary', 'another-secret-canary']
  const { body: made } = await box.call('POST', '/v1/webhooks', {
    url,
    events: ['*'],
    secret: canaries[0],
    headers: { Authorization: `Bearer ${canaries[1]}` },
  })
  await box.call('POST', `/v1/webhooks/${made['id']}/secret/rotate`, { secret: canaries[2] })
  await box.call('POST', `/v1/webhooks/${made['id']}/test`)
  const data = join(box.directory, 'data')
  const kept = readdirSync(data, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)).toString('latin1'))
    .join('')
  expect(kept).toContain(made['id'] as string)
  for (const canary of canaries) {
    expect(kept).not.toContain(canary)
    expect(box.logged.join('')).not.toContain(canary)
  }
})

test.each([
  ['https://127.0.0.2:1/', 'is not a public address', {}],
  ['https://169.254.169.254/latest', 'is not a public address', near],
  ['https://inside.test/', 'the address of inside.test is not a public address', near],
  ['http://outside.test/', 'must be https', near],
  ['http://nowhere.test/', 'has no address', near],
  ['ftp://outside.test/', 'must be an https URL', near],
  ['https://user:pass@outside.test/', 'must not contain credentials', near],
  ['nonsense', 'not a URL', near],
  ['https://outside.test:25/', 'port 25', near],
  ['https://out\nside.test/', 'spaces, control characters', near],
  [' https://outside.test/', 'spaces, control characters', near],
  ['https:/\\outside.test/', 'backslashes', near],
  ['https:outside.test', 'must begin with https://', near],
  ['https://@outside.test/', 'must not contain credentials', near],
  ['https://:@outside.test/', 'must not contain credentials', near],
])('%s is refused, saying why', async (bad, why, env) => {
  const box = await appliance(env)
  box.dns.a('inside.test', '10.0.0.1').a('outside.test', '93.184.215.14')
  const refused = await box.call('POST', '/v1/webhooks', { url: bad, events: ['*'] })
  expect(refused.status).toBe(400)
  expect(refused.body.error).toMatchObject({ type: 'invalid_request', param: 'url' })
  expect(refused.body.error['message']).toContain(why)
  const { body: good } = await box.call('POST', '/v1/webhooks', { url: 'https://outside.test/', events: ['*'] })
  const changed = await box.call('PATCH', `/v1/webhooks/${good['id']}`, { url: bad })
  expect(changed.body.error).toMatchObject({ type: 'invalid_request', param: 'url' })
})

test('a name that does not resolve yet is taken; http is, where the operator allows it', async () => {
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_HTTP: 'true' })
  box.dns.a('outside.test', '93.184.215.14')
  for (const good of ['https://not-yet.test/hook', 'http://outside.test/']) {
    expect((await box.call('POST', '/v1/webhooks', { url: good, events: ['*'], active: false })).status).toBe(201)
  }
  expect((await box.call('POST', '/v1/webhooks', { url, events: ['*'] })).status).toBe(400)
})

test.each([
  [
    { events: ['email.recieved'] },
    'events.0',
    /no event email.recieved. Did you mean email.received\? The events are identity.created, .*webhook.test/,
  ],
  [{ events: [] }, 'events', /at least one event/],
  [{ events: undefined }, 'events', /required/],
  [{ secret: 'short' }, 'secret', /16 to 256/],
  [{ secret: 'whsec_****************' }, 'secret', /base64/],
  [{ headers: { Host: 'x' } }, 'headers', /must not set/],
  [{ headers: { 'Webhook-Id': 'x' } }, 'headers', /must not set/],
  [{ headers: { 'X-A': 'two\r\nlines' } }, 'headers.X-A', /printable ASCII/],
  [{ headers: { 'bad name': 'x' } }, 'headers.bad name', /key that is not allowed|name of a header/],
  [{ headers: { 'X-A': '1', 'x-a': '2' } }, 'headers', /twice/],
  [{ identity_id: 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a' }, undefined, /No such identity/],
  [{ colour: 'red' }, 'colour', /unknown|no field|did you mean/i],
])('%j is refused with a sentence', async (part, param, why) => {
  const box = await appliance(near)
  const refused = await box.call('POST', '/v1/webhooks', { url, events: ['*'], ...part })
  expect([400, 404]).toContain(refused.status)
  expect(refused.body.error['message']).toMatch(why)
  if (param !== undefined) expect(refused.body.error['param']).toBe(param)
  expect((await box.call('GET', '/v1/webhooks')).body.data).toEqual([])
})

test('the networks that may be reached are read again while the box runs', async () => {
  const box = await appliance()
  const sink = await WebhookSink.start()
  const input = { url: sink.url, events: ['identity.created'] }
  expect((await box.call('POST', '/v1/webhooks', input)).body.error['param']).toBe('url')
  const reload = async (env: Record<string, string>): Promise<void> => {
    const { restart } = await box.app.reload(await loadConfig({ env: { ...box.env, ...env }, cwd: box.directory }))
    expect(restart).toEqual([])
  }
  await reload(near)
  const { body: webhook } = await box.call('POST', '/v1/webhooks', input)
  await box.call('POST', '/v1/identities', {})
  await sink.until(1)
  await reload({})
  await box.call('POST', `/v1/webhooks/${webhook['id']}/test`)
  await box.settled()
  expect((await box.call('GET', `/v1/webhooks/${webhook['id']}/deliveries`)).body.data[0]).toMatchObject({
    status: 'pending',
    attempts: [{ error: '127.0.0.1 is not a public address' }],
  })
  expect(sink.received).toHaveLength(1)
})

test('a key gets to hear by a webhook only what it may read', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const narrow = await keyWith(box, ['account:write', 'account:read', 'identities:read'])
  const refused = await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['email.received'] }, { key: narrow })
  expect(refused).toMatchObject({ status: 403, body: { error: { param: 'events', code: 'missing_scope' } } })
  const { body: mine } = await box.call('POST', '/v1/webhooks', { url: `${sink.url}/narrow`, events: ['*'] }, { key: narrow })
  const { body: wide } = await box.call('POST', '/v1/webhooks', { url: `${sink.url}/wide`, events: ['*'] })

  // somebody else's webhook hears more than this key may: it must not be led elsewhere, nor its secret be had
  for (const [method, path] of [
    ['PATCH', ''],
    ['POST', '/secret/rotate'],
  ] as const) {
    const led = await box.call(
      method,
      `/v1/webhooks/${wide['id']}${path}`,
      method === 'PATCH' ? { url: `${sink.url}/led` } : {},
      { key: narrow },
    )
    expect(led.status).toBe(403)
  }
  expect((await box.call('PATCH', `/v1/webhooks/${mine['id']}`, { description: 'ours' }, { key: narrow })).status).toBe(200)

  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada['email'] as string, raw: message({ Subject: 'Hi' }, 'Hello\n') })
  await sink.until(6)
  const heard = (path: string): string[] => sink.received.filter((one) => one.path === path).map((one) => one.body.event)
  await box.settled()
  expect(heard('/wide')).toEqual(['webhook.updated', 'identity.created', 'email.received'])
  expect(heard('/narrow')).toEqual(['webhook.created', 'webhook.updated', 'identity.created'])
})

test('a bound key makes and sees webhooks of its identity only, and those hear nothing else', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: eve } = await box.call('POST', '/v1/identities', { name: 'Eve' })
  const bound = await keyWith(box, ['account:write', 'account:read', 'identities:read'], ada['id'] as string)
  const { body: everything } = await box.call('POST', '/v1/webhooks', { url, events: ['identity.deleted'] })
  const { body: own } = await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['*'] }, { key: bound })
  expect(own['identity_id']).toBe(ada['id'])
  const other = await box.call('POST', '/v1/webhooks', { url, events: ['*'], identity_id: eve['id'] }, { key: bound })
  expect(other.status).toBe(404)
  for (const identity_id of [eve['id'], null]) {
    expect((await box.call('PATCH', `/v1/webhooks/${own['id']}`, { identity_id }, { key: bound })).status).toBe(404)
  }
  expect((await box.call('GET', `/v1/webhooks/${everything['id']}`, undefined, { key: bound })).status).toBe(404)
  expect((await box.call('GET', '/v1/webhooks', undefined, { key: bound })).body.data.map(({ id }) => id)).toEqual([own['id']])
  await box.call('PATCH', `/v1/identities/${eve['id']}`, { name: 'Eva' })
  await box.call('PATCH', `/v1/identities/${ada['id']}`, { name: 'Ada L' })
  await sink.until(1)
  expect(sink.received.map(({ body }) => body.data['name'])).toEqual(['Ada L'])
})

/** So many more webhooks as the one that is there. */
function copies(box: Appliance, count: number): void {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  const rows = database.prepare(`SELECT name FROM pragma_table_info('webhooks') WHERE name NOT IN ('seq', 'id')`).all()
  const columns = rows.map(({ name }) => name as string).join(', ')
  database
    .prepare(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        INSERT INTO webhooks (id, ${columns}) SELECT 'whk_' || i, ${columns} FROM n, webhooks`,
    )
    .run(count)
  database.close()
}

test('an account has a thousand webhooks at most, whatever its plan says', async () => {
  const box = await appliance(near)
  const input = { url, events: ['*'] }
  const { body: first } = await box.call('POST', '/v1/webhooks', input)
  copies(box, 998)
  expect((await box.call('POST', '/v1/webhooks', input)).status).toBe(201)
  const { status, body } = await box.call('POST', '/v1/webhooks', input)
  expect([status, body.error]).toMatchObject([409, { type: 'conflict', code: 'too_many_webhooks' }])
  expect(body.error['message']).toContain('at most 1000 webhooks')
  await box.call('DELETE', `/v1/webhooks/${first['id']}`)
  expect((await box.call('POST', '/v1/webhooks', input)).status).toBe(201)
})

test('many events of an account with many webhooks are not in the way of another account, and each webhook gets them in order', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const { body: first } = await box.call('POST', '/v1/webhooks', { url: `${sink.url}/many`, events: ['identity.updated'] })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  copies(box, 698)
  const other = { key: accountKey(box) }
  await box.call('POST', '/v1/webhooks', { url: `${sink.url}/one`, events: ['identity.created'] }, other)
  // the last of the 700
  const { body: last } = await box.call('POST', '/v1/webhooks', { url: `${sink.url}/many`, events: ['identity.updated'] })
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true, timeout: 60_000 })
  onTestFinished(() => database.close())
  const all = `SELECT count(*) AS n FROM deliveries_queue JOIN webhooks ON webhooks.id = lane WHERE events LIKE '%updated%'`
  const written = (): number => database.prepare(all).get()!['n'] as number
  const names = Array.from({ length: 12 }, (_, index) => `Ada ${index}`)
  const changes = names.map((name) => box.call('PATCH', `/v1/identities/${ada['id']}`, { name }))
  await Promise.all(changes)
  await box.call('POST', '/v1/identities', {}, other)
  await expect
    .poll(() => database.prepare(`SELECT 1 FROM deliveries_queue WHERE load LIKE '%identity.created%'`).get())
    .toBeDefined()
  expect(written()).toBeLessThan(12 * 700)
  await expect.poll(written).toBe(12 * 700)
  for (const { id } of [first, last]) {
    const events = database
      .prepare(
        `SELECT events.seq FROM deliveries_queue JOIN events ON events.id = json_extract(load, '$.event_id') WHERE lane = ? ORDER BY deliveries_queue.seq`,
      )
      .all(id as string)
      .map(({ seq }) => Number(seq))
    expect(events).toHaveLength(12)
    expect(events).toEqual([...new Set(events)].toSorted((one, next) => one - next))
  }
})

test('an event reads none of the webhooks that hear of another identity', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const [ada, bob] = await Promise.all(
    ['Ada', 'Bob'].map(async (name) => (await box.call('POST', '/v1/identities', { name })).body),
  )
  await box.call('POST', '/v1/webhooks', { url, events: ['identity.updated'], identity_id: bob!['id'] })
  copies(box, 700)
  await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['identity.updated'], identity_id: ada!['id'] })
  const spy = vi.spyOn(OpenTransaction.prototype, 'all')
  onTestFinished(() => spy.mockRestore())
  await box.call('PATCH', `/v1/identities/${ada!['id']}`, { metadata: { a: 'b' } })
  await sink.until(1)
  let read = 0
  for (const [index, [{ sql }]] of spy.mock.calls.entries()) {
    if (sql.includes('FROM webhooks')) read += (await spy.mock.results[index]!.value).length
  }
  expect(read).toBeGreaterThan(0)
  expect(read).toBeLessThan(10)
})

test('a webhook hears from the next event on what it asks for now', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const { body: webhook } = await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['identity.deleted'] })
  const path = `/v1/webhooks/${webhook['id']}`
  const made = async (): Promise<unknown> => (await box.call('POST', '/v1/identities', {})).body['id']
  await made()
  await box.call('PATCH', path, { events: ['identity.created'] })
  const second = await made()
  await sink.until(1)
  await box.call('PATCH', path, { active: false })
  await made()
  await box.call('PATCH', path, { active: true })
  const fourth = await made()
  const heard = await sink.until(2)
  expect(heard.map(({ body }) => body.identity_id)).toEqual([second, fourth])
})
