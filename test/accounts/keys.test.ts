import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { scopes } from '../../src/core/scopes.ts'
import { appliance, type Appliance } from '../support/appliance.ts'

test('a key may live until any time there is a way to write, and no longer', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({}, clock)
  for (const expires_at of [
    '9999-12-31T23:59:59-23:59',
    '2020-01-01T00:00:00Z',
    '2026-11-20T10:00:00Z',
    '2027',
    'tomorrow',
    '',
    '2027-02-30T00:00:00Z',
    0,
    null,
  ]) {
    const told = await box.call('POST', '/v1/api-keys', { expires_at })
    expect([expires_at, told.status, told.body.error?.['param']]).toEqual([expires_at, 400, 'expires_at'])
  }
  expect((await box.call('GET', '/v1/api-keys')).status).toBe(200)
  const { body: made } = await box.call('POST', '/v1/api-keys', { expires_at: '2026-11-20T12:00:00+01:00' })
  expect(made.expires_at).toBe('2026-11-20T11:00:00.000Z')
  const status = async (): Promise<number> => (await box.call('GET', '/v1/identities', undefined, { key: made.key })).status
  expect(await status()).toBe(200)
  clock.time += 3_599_999
  expect(await status()).toBe(200)
  clock.time += 1
  expect(await status()).toBe(401)
  const { body: rotated } = await box.call('POST', `/v1/api-keys/${made.id}/rotate`, {})
  expect((await box.call('GET', '/v1/identities', undefined, { key: rotated.key })).status).toBe(401)
})

test('the old secret works for the grace given and no longer, and only the last old one', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({}, clock)
  const { body: first } = await box.call('POST', '/v1/api-keys', {})
  const works = async (key: string): Promise<boolean> =>
    (await box.call('GET', '/v1/identities', undefined, { key })).status === 200
  const { body: second } = await box.call('POST', `/v1/api-keys/${first.id}/rotate`, { grace_seconds: 60 })
  expect([await works(first.key), await works(second.key)]).toEqual([true, true])
  clock.time += 60_000
  expect([await works(first.key), await works(second.key)]).toEqual([false, true])
  const { body: third } = await box.call('POST', `/v1/api-keys/${first.id}/rotate`, { grace_seconds: 60 })
  const { body: fourth } = await box.call('POST', `/v1/api-keys/${first.id}/rotate`, { grace_seconds: 60 })
  expect(await Promise.all([first, second, third, fourth].map(({ key }) => works(key as string)))).toEqual([
    false,
    false,
    true,
    true,
  ])
  for (const grace_seconds of [-1, 604_801, 1.5, '60', null]) {
    const told = await box.call('POST', `/v1/api-keys/${first.id}/rotate`, { grace_seconds })
    expect(told).toMatchObject({ status: 400, body: { error: { param: 'grace_seconds' } } })
  }
  await box.call('DELETE', `/v1/api-keys/${first.id}`)
  expect([await works(third.key), await works(fourth.key)]).toEqual([false, false])
  expect((await box.call('POST', `/v1/api-keys/${first.id}/rotate`, {})).status).toBe(404)
})

test('a key gives away no scope it does not hold, by no way', async () => {
  const box = await appliance()
  const { body: narrow } = await box.call('POST', '/v1/api-keys', { scopes: ['account:write', 'account:read', 'messages:read'] })
  const as = { key: narrow.key as string }
  const held = new Set(['account:write', 'account:read', 'messages:read', 'emails:read', 'sms:read'])
  for (const scope of scopes) {
    const told = await box.call('POST', '/v1/api-keys', { scopes: [scope] }, as)
    expect([scope, told.status]).toEqual([scope, held.has(scope) ? 201 : 403])
  }
  expect((await box.call('POST', '/v1/api-keys', {}, as)).body['scopes']).toEqual(narrow.scopes)
  const { body: keys } = await box.call('GET', '/v1/api-keys')
  const first = keys.data.at(-1)
  const rotate = await box.call('POST', `/v1/api-keys/${first.id}/rotate`, {}, as)
  expect(rotate).toMatchObject({ status: 403, body: { error: { code: 'missing_scope' } } })
  for (const wrong of [
    [],
    ['*'],
    ['admin'],
    ['identities:*'],
    'messages:read',
    ['messages:read', null],
    { 0: 'messages:read' },
  ]) {
    expect((await box.call('POST', '/v1/api-keys', { scopes: wrong })).status).toBe(400)
  }
  const { body: twice } = await box.call('POST', '/v1/api-keys', { scopes: ['cards:read', 'cards:read'] })
  expect(twice.scopes).toEqual(['cards:read'])
})

test('a key bound to one identity sees, makes and revokes only keys bound alike', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const { body: wide } = await box.call('POST', '/v1/api-keys', { label: 'wide' })
  const { body: bobs } = await box.call('POST', '/v1/api-keys', { identity_id: bob.id })
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: ada.id })
  const as = { key: bound.key as string }
  expect((await box.call('GET', '/v1/api-keys', undefined, as)).body.data.map(({ id }) => id as string)).toEqual([bound.id])
  expect((await box.call('GET', '/v1/identities', undefined, as)).body.data.map(({ id }) => id as string)).toEqual([ada.id])
  for (const { id } of [wide, bobs]) {
    expect((await box.call('DELETE', `/v1/api-keys/${id}`, undefined, as)).status).toBe(404)
    expect((await box.call('POST', `/v1/api-keys/${id}/rotate`, {}, as)).status).toBe(404)
  }
  expect((await box.call('POST', '/v1/api-keys', { identity_id: bob.id }, as)).status).toBe(404)
  expect((await box.call('POST', '/v1/api-keys', { identity_id: 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a' })).status).toBe(404)
  expect((await box.call('POST', '/v1/identities', {}, as)).status).toBe(404)
  const { body: child } = await box.call('POST', '/v1/api-keys', {}, as)
  expect(child.identity_id).toBe(ada.id)
  await box.call('DELETE', `/v1/identities/${ada.id}`, undefined, as)
  for (const { key } of [bound, child]) expect((await box.call('GET', '/v1/identities', undefined, { key })).status).toBe(401)
})

test('a revoked key is refused at once, also while it is being used by many', async () => {
  const box = await appliance()
  const { body: made } = await box.call('POST', '/v1/api-keys', {})
  const as = { key: made.key as string }
  let revoked = false
  const users = Array.from({ length: 10 }, async () => {
    for (let turn = 0; turn < 30; turn += 1) {
      const after = revoked
      const { status } = await box.call('GET', '/v1/identities', undefined, as)
      if (after) expect(status).toBe(401)
      if (status === 401) return
    }
  })
  await box.call('DELETE', `/v1/api-keys/${made.id}`)
  revoked = true
  await Promise.all(users)
  expect((await box.call('GET', '/v1/identities', undefined, as)).status).toBe(401)
  await box.restart()
  expect((await box.call('GET', '/v1/identities', undefined, as)).status).toBe(401)
})

test('a key has its own rate, and its last use is written down', async () => {
  const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '100' })
  const { body: few } = await box.call('POST', '/v1/api-keys', { rate_limit: 2 })
  const { body: usual } = await box.call('POST', '/v1/api-keys', {})
  expect([few.rate_limit, usual.rate_limit, few.last_used_at]).toEqual([2, 100, null])
  const statuses: number[] = []
  for (let turn = 0; turn < 3; turn += 1) {
    statuses.push((await box.call('GET', '/v1/identities', undefined, { key: few.key })).status)
  }
  expect(statuses).toEqual([200, 200, 429])
  const limited = await box.call('GET', '/v1/identities', undefined, { key: few.key })
  expect(limited.body.error).toMatchObject({ type: 'rate_limited', status: 429 })
  expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await box.call('GET', '/v1/identities', undefined, { key: usual.key })).status).toBe(200)
  await box.restart()
  const { body: keys } = await box.call('GET', '/v1/api-keys')
  expect(keys.data.find(({ id }) => id === few.id).last_used_at).toMatch(/^\d{4}-/)
  for (const rate_limit of [-1, 1_000_001, 1.5, '5', null]) {
    expect((await box.call('POST', '/v1/api-keys', { rate_limit })).body.error).toMatchObject({
      status: 400,
      param: 'rate_limit',
    })
  }
})

test('the store keeps a key’s hash and its first characters, never the key', async () => {
  const box = await appliance()
  const { body: made } = await box.call('POST', '/v1/api-keys', { label: ' spaced ' })
  expect(made.label).toBe('spaced')
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true })
  const rows = database.prepare('SELECT * FROM api_keys').all()
  database.close()
  expect(JSON.stringify(rows)).not.toContain(made.key)
  expect(JSON.stringify(rows)).not.toContain(box.key)
  expect(rows.map(({ key_prefix }) => String(key_prefix).length)).toEqual([6, 12])
  for (const label of [
    '',
    '   ',
    'x'.repeat(129),
    'a\nb',
    'a\u001bb',
    '\u200b',
    '\u200b\u2060\u00ad',
    '\u202ereversed',
    5,
    null,
  ]) {
    expect((await box.call('POST', '/v1/api-keys', { label })).body.error).toMatchObject({ status: 400, param: 'label' })
  }
})

test('a key without a rate of its own takes the one of the settings, also when they are read again', async () => {
  const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '100' })
  const { body: few } = await box.call('POST', '/v1/api-keys', { rate_limit: 5 })
  const { body: usual } = await box.call('POST', '/v1/api-keys', {})
  const policy = async (key: string): Promise<string | null> =>
    (await box.call('GET', '/v1/identities', undefined, { key })).headers.get('ratelimit-policy')
  expect([await policy(usual.key), await policy(few.key)]).toEqual(['"key";q=100;w=60', '"key";q=5;w=60'])
  const { restart } = await box.app.reload(
    await loadConfig({ env: { ...box.env, PILLARBOX_HTTP__RATE_LIMIT: '70' }, cwd: box.directory }),
  )
  expect(restart).toEqual([])
  expect([await policy(usual.key), await policy(few.key)]).toEqual(['"key";q=70;w=60', '"key";q=5;w=60'])
  const { body } = await box.call('GET', '/v1/api-keys')
  expect(body.data.map(({ rate_limit }) => rate_limit as number)).toEqual([70, 5, 70])
})

test('a limited key gives no more calls and no longer life than its own, by no way', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '600' }, clock)
  const end = '2026-11-21T10:00:00.000Z'
  const { body: maker } = await box.call('POST', '/v1/api-keys', { rate_limit: 50, expires_at: end })
  const as = { key: maker.key as string }
  for (const [input, param] of [
    [{ rate_limit: 51 }, 'rate_limit'],
    [{ rate_limit: 0 }, 'rate_limit'],
    [{ expires_at: '2026-11-21T10:00:00.001Z' }, 'expires_at'],
  ] as const) {
    const told = await box.call('POST', '/v1/api-keys', input, as)
    expect(told.body.error).toMatchObject({ status: 403, code: 'beyond_own', param })
  }
  expect((await box.call('POST', '/v1/api-keys', {}, as)).body).toMatchObject({ rate_limit: 50, expires_at: end })
  const smaller = { rate_limit: 7, expires_at: '2026-11-20T11:00:00.000Z' }
  expect((await box.call('POST', '/v1/api-keys', smaller, as)).body).toMatchObject(smaller)

  const { body: lasting } = await box.call('POST', '/v1/api-keys', {})
  const rotated = await box.call('POST', `/v1/api-keys/${lasting.id}/rotate`, {}, as)
  expect(rotated.body.error).toMatchObject({ status: 403, code: 'beyond_own' })
  expect((await box.call('POST', `/v1/api-keys/${maker.id}/rotate`, {}, as)).status).toBe(200)
})

test('revoking a key needs the scopes it holds', async () => {
  const box = await appliance()
  const { body: wide } = await box.call('POST', '/v1/api-keys', {})
  const { body: narrow } = await box.call('POST', '/v1/api-keys', { scopes: ['account:write', 'emails:read'] })
  const { body: reader } = await box.call('POST', '/v1/api-keys', { scopes: ['emails:read'] })
  const as = { key: narrow.key as string }
  const refused = await box.call('DELETE', `/v1/api-keys/${wide.id}`, undefined, as)
  expect(refused.body.error).toMatchObject({ status: 403, code: 'missing_scope' })
  expect((await box.call('GET', '/v1/identities', undefined, { key: wide.key })).status).toBe(200)
  expect((await box.call('DELETE', `/v1/api-keys/${reader.id}`, undefined, as)).status).toBe(200)
})

test('nobody locks the box: the last key that can make others stays', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: keys } = await box.call('GET', '/v1/api-keys')
  const first = `/v1/api-keys/${keys.data[0].id}`
  for (const input of [{ scopes: ['emails:read'] }, { identity_id: ada.id }, { expires_at: '2999-01-01T00:00:00Z' }]) {
    expect((await box.call('POST', '/v1/api-keys', input)).status).toBe(201)
    expect((await box.call('DELETE', first)).body.error).toMatchObject({ status: 409, type: 'conflict', code: 'last_key' })
  }
  const { body: second } = await box.call('POST', '/v1/api-keys', {})
  const alone = await box.call('DELETE', first)
  expect(alone.body.error).toMatchObject({ status: 409, code: 'last_key', message: expect.stringContaining('?keep=true') })
  expect((await box.call('DELETE', `${first}?keep=true`)).status).toBe(200)
  const as = { key: second.key as string }
  expect((await box.call('DELETE', `/v1/api-keys/${second.id}`, undefined, as)).body.error).toMatchObject({ code: 'last_key' })
  expect((await box.call('GET', '/v1/identities', undefined, as)).status).toBe(200)
})

/** The rows of keys and of what they end with. */
function stored(box: Appliance): { keys: number; origins: number } {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true, timeout: 60_000 })
  const count = (table: string): number => database.prepare(`SELECT count(*) AS n FROM ${table}`).get()!['n'] as number
  const rows = { keys: count('api_keys'), origins: count('credential_origins') }
  database.close()
  return rows
}

test('nothing is stored of a revoked key, unless something that it created is kept', async () => {
  const box = await appliance()
  const create = async (key = box.key) => (await box.call<{ id: string; key: string }>('POST', '/v1/api-keys', {}, { key })).body
  const before = stored(box)
  for (let round = 0; round < 3; round += 1) {
    const parent = await create()
    const child = await create(parent.key)
    const grandchild = await create(child.key)
    await box.call('POST', `/v1/api-keys/${child.id}/rotate`, {}, { key: parent.key })
    await box.call('DELETE', `/v1/api-keys/${grandchild.id}`)
    await box.call('DELETE', `/v1/api-keys/${parent.id}`)
  }
  await box.app.jobs.find(({ name }) => name === 'sweep-keys')!.run()
  expect(stored(box)).toEqual(before)
  // a child that is kept ends with the key above the one that created it
  const top = await create()
  const middle = await create(top.key)
  const bottom = await create(middle.key)
  await box.call('DELETE', `/v1/api-keys/${middle.id}?keep=true`)
  await box.app.jobs.find(({ name }) => name === 'sweep-keys')!.run()
  expect((await box.call('DELETE', `/v1/api-keys/${top.id}`)).body['ended']).toMatchObject({ api_keys: 1 })
  expect((await box.call('GET', '/v1/identities', undefined, { key: bottom.key })).status).toBe(401)
  await box.app.jobs.find(({ name }) => name === 'sweep-keys')!.run()
  expect(stored(box)).toEqual(before)
})

test('nothing is stored of revoked keys that rotated one another', async () => {
  const box = await appliance()
  const create = async (key = box.key) => (await box.call<{ id: string; key: string }>('POST', '/v1/api-keys', {}, { key })).body
  const rotate = async ({ id }: { id: string }, key: string) =>
    (await box.call<{ id: string; key: string }>('POST', `/v1/api-keys/${id}/rotate`, {}, { key })).body
  const before = stored(box)
  const leaked = await create()
  for (let pair = 0; pair < 3; pair += 1) {
    const [one, other] = [await create(leaked.key), await create(leaked.key)]
    const again = await rotate(one, other.key)
    await rotate(other, again.key)
  }
  // a key that one of a loop rotated, and that is kept, ends with the key above the loop
  const [one, other, kept] = [await create(leaked.key), await create(leaked.key), await create()]
  const again = await rotate(one, other.key)
  const last = await rotate(other, again.key)
  const living = await rotate(kept, last.key)
  for (const { id } of [one, other]) await box.call('DELETE', `/v1/api-keys/${id}?keep=true`)
  await box.app.jobs.find(({ name }) => name === 'sweep-keys')!.run()
  expect((await box.call('GET', '/v1/identities', undefined, { key: living.key })).status).toBe(200)
  const { body: told } = await box.call('DELETE', `/v1/api-keys/${leaked.id}`)
  expect(told['ended']).toMatchObject({ api_keys: 7 })
  expect((await box.call('GET', '/v1/identities', undefined, { key: living.key })).status).toBe(401)
  await box.app.jobs.find(({ name }) => name === 'sweep-keys')!.run()
  expect(stored(box)).toEqual(before)
})

test('a key that revokes the one above it still ends with the key above both', async () => {
  const box = await appliance()
  const create = async (key = box.key) => (await box.call<{ id: string; key: string }>('POST', '/v1/api-keys', {}, { key })).body
  const top = await create()
  const middle = await create(top.key)
  const bottom = await create(middle.key)
  expect((await box.call('DELETE', `/v1/api-keys/${middle.id}`, undefined, { key: bottom.key })).status).toBe(200)
  await box.app.jobs.find(({ name }) => name === 'sweep-keys')!.run()
  expect((await box.call('GET', '/v1/identities', undefined, { key: bottom.key })).status).toBe(200)
  expect((await box.call('DELETE', `/v1/api-keys/${top.id}`)).body['ended']).toMatchObject({ api_keys: 1 })
  expect((await box.call('GET', '/v1/identities', undefined, { key: bottom.key })).status).toBe(401)
})

test('what a revoked key was to send is cancelled although the key is deleted', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: made } = await box.call('POST', '/v1/api-keys', {})
  const send_at = new Date(Date.now() + 86_400_000).toISOString()
  const later = { to: [ada['email']], subject: 'later', body_text: 'later', send_at }
  const { body: email } = await box.call('POST', `/v1/identities/${ada.id}/emails`, later, { key: made['key'] })
  expect((await box.call('DELETE', `/v1/api-keys/${made.id}`)).body['ended']).toMatchObject({ scheduled_emails: 1 })
  await box.app.jobs.find(({ name }) => name === 'sweep-keys')!.run()
  await expect
    .poll(async () => (await box.call('GET', `/v1/identities/${ada.id}/emails/${email.id}`)).body['status'])
    .toBe('cancelled')
  await box.app.jobs.find(({ name }) => name === 'sweep-keys')!.run()
  expect(stored(box).keys).toBe(1)
})

/** So many more keys as the one that was created last. */
function copies(box: Appliance, count: number): void {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  const rows = database.prepare(`SELECT name FROM pragma_table_info('api_keys') WHERE name NOT IN ('seq', 'id', 'hash')`).all()
  const columns = rows.map(({ name }) => name as string).join(', ')
  database
    .prepare(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        INSERT INTO api_keys (id, hash, ${columns}) SELECT 'key_' || i, 'hash ' || i, ${columns} FROM n,
        (SELECT * FROM api_keys ORDER BY seq DESC LIMIT 1) AS last`,
    )
    .run(count)
  database.close()
}

test('an account has ten thousand keys at most, whatever its plan says; one call revokes all that a key created', async () => {
  const box = await appliance()
  const { body: maker } = await box.call('POST', '/v1/api-keys', {})
  const create = () => box.call('POST', '/v1/api-keys', { scopes: ['identities:read'] }, { key: maker.key })
  const { body: made } = await create()
  copies(box, 9996)
  expect((await create()).status).toBe(201)
  const { status, body } = await create()
  expect([status, body.error]).toMatchObject([409, { type: 'conflict', code: 'too_many_keys' }])
  expect(body.error['message']).toContain('at most 10000 API keys')
  await box.call('DELETE', `/v1/api-keys/${made.id}`)
  expect((await create()).status).toBe(201)
  const { body: told } = await box.call('DELETE', `/v1/api-keys/${maker.id}`)
  expect(told).toMatchObject({ ended: { api_keys: 9998 } })
  expect((await box.call('GET', '/v1/identities', undefined, { key: maker.key })).status).toBe(401)
  expect((await box.call('GET', '/v1/api-keys?limit=100')).body.data).toHaveLength(1)
})
