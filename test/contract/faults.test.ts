import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { type RoutePath, stores } from '../../src/http/route.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { Asking } from './asking.ts'
import { inhabit } from './inhabited.ts'

test('every kind of fault has its one status', async () => {
  const box = await appliance()
  const { body: few } = await box.call('POST', '/v1/api-keys', { rate_limit: 1, scopes: ['identities:read'] })
  await box.call('GET', '/v1/identities', undefined, { key: few.key })
  await box.call('POST', '/v1/identities', { name: 'Taken' })
  const absent = 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a'
  const told = [
    await box.call('GET', '/v1/identities?limit=0'),
    await box.call('GET', '/v1/identities', undefined, { key: null }),
    await box.call('GET', '/v1/api-keys', undefined, { key: few.key }),
    await box.call('GET', `/v1/identities/${absent}`),
    await box.call('POST', '/v1/identities', { name: 'taken' }),
  ]
  const { body: narrow } = await box.call('POST', '/v1/api-keys', { scopes: ['identities:read'] })
  told.push(await box.call('GET', '/v1/api-keys', undefined, { key: narrow.key }))
  damage(box, 'DROP TABLE threads')
  const { body: list } = await box.call('GET', '/v1/identities')
  told.push(await box.call('GET', `/v1/identities/${list.data[0].id}/threads`))
  expect(told.map(({ status, body }) => [body.error['type'], status, body.error['status']])).toEqual([
    ['invalid_request', 400, 400],
    ['unauthorized', 401, 401],
    ['rate_limited', 429, 429],
    ['not_found', 404, 404],
    ['conflict', 409, 409],
    ['forbidden', 403, 403],
    ['internal_error', 500, 500],
  ])
  expect(Number(told[2]!.headers.get('retry-after'))).toBeGreaterThan(0)
})

describe('with the store broken under it', async () => {
  const world = await inhabit()
  afterAll(() => world.close())
  const asking = new Asking(world)
  // a key is remembered for a while; a token for sockets is signed, not stored; the example of one to verify is none; the policy of our domains and the card of the box are in
  // memory; backups and certificates are files; the doctor says of a broken store that it is broken
  const remembered = [
    'GET /v1/whoami',
    'POST /v1/realtime/token',
    'POST /v1/verify/token',
    'GET /v1/backups',
    'GET /v1/certificates',
    'POST /v1/certificates/renew',
    'GET /v1/doctor',
    'POST /v1/doctor',
    // settings are files
    'POST /v1/reload',
    'GET /llms.txt',
    ...[
      'mta-sts.txt',
      'agent-card.json',
      'oauth-authorization-server',
      'oauth-protected-resource',
      'oauth-protected-resource/mcp',
    ].map((name) => `GET /.well-known/${name}`),
  ]
  const storing = asking.spellings.filter(({ method, path }) => !remembered.includes(`${method} ${path}`))
  const questions = await Promise.all(
    storing.map(async (spelling) => ({ spelling, ...(await asking.good(spelling, world.own)) })),
  )
  for (const table of [
    'identities',
    'emails',
    'threads',
    'events',
    'addresses',
    'blobs',
    'api_keys',
    'webhooks',
    'suppressions',
    'sender_rules',
    'policies',
    'holds',
    'domains',
    'jobs',
    'deliveries_queue',
    'signing_keys',
    'logins',
    'sessions',
    'invitations',
    'hold_links',
    'figures',
    'audit',
  ]) {
    world.database.exec(`ALTER TABLE ${table} RENAME TO lost_${table}`)
  }

  test.each(questions.map((one) => [`${one.spelling.method} ${one.spelling.path}`, one] as const))(
    '%s says a fixed sentence to the caller, and the cause once to the log',
    async (_, { spelling, path, question }) => {
      const told = await asking.ask(spelling, path, question)
      expect(told.json.error).toMatchObject({
        type: 'internal_error',
        code: 'internal_error',
        message: 'Internal error. If it happens again, report the request_id.',
      })
      expect(told.text).not.toMatch(/sqlite|no such|table|column|SELECT|INSERT|lost_|\/src\/|node:|\.ts\b|stack/i)
      for (const value of told.headers.values()) expect(value).not.toMatch(/sqlite|lost_|\.ts\b/i)
      const lines = world.box.logged.filter((line) => line.includes(told.json.error.request_id as string))
      expect(lines.filter((line) => line.includes('"level":"error"'))).toHaveLength(1)
      expect(lines).toHaveLength(2)
    },
  )

  test('is not ready, and says of what it is made', async () => {
    world.database.exec('DROP TABLE box')
    const { status, body } = await world.box.call('GET', '/readyz', undefined, { key: null })
    expect([status, body]).toEqual([503, { status: 'unavailable', failing: ['store'] }])
    expect((await world.box.call('GET', '/healthz', undefined, { key: null })).status).toBe(200)
  })

  test('puts mail off', async () => {
    const reply = await deliver(world.box.smtp, { to: 'own@pillarbox.test', raw: message({}, 'x\n') })
    expect(reply).toMatch(/^451 4\.3\.0 /)
    expect(reply).not.toMatch(/sqlite|table/i)
  })
})

test('with no room left, what stores is refused and what reads or deletes works; SMTP puts mail off', async () => {
  const world = await inhabit()
  const { box, own } = world
  onTestFinished(() => world.close())
  box.env['PILLARBOX_MIN_FREE'] = '1000000 GiB'
  await box.restart()
  const asking = new Asking(world)
  const order = ['POST', 'PATCH', 'GET', 'DELETE']
  // what is stopped or taken back cannot be read as before, nor deleted where it was
  const place = ({ method, route }: RoutePath): number => (method === 'POST' && !stores(route) ? 2.5 : order.indexOf(method))
  const inOrder = asking.spellings.toSorted(
    // of what is deleted, first what is below
    (one, other) => place(one) - place(other) || depth(other) - depth(one),
  )
  for (const spelling of inOrder) {
    const { path, question } = await asking.good(spelling, own)
    // the identity goes last of all, for the rest is below it
    if (spelling.method === 'DELETE' && spelling.path === '/v1/identities/:id') continue
    // what it decides is rejected by a call of its own
    if (spelling.path === '/v1/hold-links/decide') continue
    // there is none, as none could be begun
    if (spelling.method === 'DELETE' && spelling.path === '/v1/account/totp') continue
    const told = await asking.ask(spelling, path, question)
    if (!stores(spelling.route)) {
      expect([spelling.path, told.status]).toEqual([spelling.path, 200])
    } else {
      expect([spelling.path, told.json.error]).toMatchObject([spelling.path, { status: 500, code: 'storage_full' }])
      expect(Number(told.headers.get('retry-after'))).toBeGreaterThan(0)
      const { cookie: _, ...bare } = question
      const stranger = await asking.ask(spelling, path, { ...bare, key: null })
      expect(stranger.status).toBe(401)
    }
  }
  const reply = await deliver(box.smtp, { to: 'own@pillarbox.test', raw: message({}, 'x\n') })
  expect(reply).toMatch(/^452 4\.3\.1 /)
  expect((await box.call('DELETE', `/v1/identities/${own.objects['identities/:id']}`)).status).toBe(200)
  const { body } = await box.call('GET', '/readyz', undefined, { key: null })
  expect(body).toMatchObject({ failing: ['space'] })
})

test('a part that cannot finish its work does not keep the box from letting go of its files', async () => {
  const box = await appliance()
  await box.call('GET', '/v1/identities')
  damage(box, "CREATE TRIGGER worn BEFORE UPDATE ON api_keys BEGIN SELECT RAISE(ABORT, 'worn'); END")
  await box.restart()
  expect(box.logged.filter((line) => line.includes('a module failed to stop'))).toHaveLength(1)
  expect((await box.call('GET', '/v1/identities')).status).toBe(200)
})

function damage(box: Appliance, statement: string): void {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  database.exec(statement)
  database.close()
}

function depth({ method, path }: RoutePath): number {
  return method === 'DELETE' ? path.split('/').length : 0
}
