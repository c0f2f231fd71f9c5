import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { isIdempotent } from '../../src/http/route.ts'
import { appliance } from '../support/appliance.ts'
import { Asking } from './asking.ts'
import { inhabit } from './inhabited.ts'

describe('a call with an Idempotency-Key', async () => {
  const world = await inhabit()
  afterAll(() => world.close())
  const asking = new Asking(world)
  const honoured = asking.spellings.filter(({ route }) => isIdempotent(route))

  test('there are some', () => {
    expect(honoured.length).toBeGreaterThanOrEqual(3)
    const others = asking.spellings.filter(({ method, route }) => method === 'POST' && !isIdempotent(route))
    // a session is begun anew each time, of a password not even a fingerprint is kept, and an upload is never read twice
    const ofLinks = ['/v1/hold-links/read', '/v1/hold-links/decide']
    const ofPeople = ['/v1/people/invitations', '/v1/people/invitations/accept', ...ofLinks]
    const ofPasswords = ['/v1/setup', '/v1/account/password', '/v1/account/totp', ...ofPeople]
    const ofLogins = ['/v1/identities/:id/logins', '/v1/logins/:id/reveal']
    // a stored answer would stop nothing
    const ofStops = ['/v1/account/stop', '/v1/account/resume']
    const repeated = ['/v1/session', ...ofStops, ...ofPasswords, ...ofLogins, '/v1/identities/:id/import']
    expect(others.map(({ path }) => path).toSorted()).toEqual(repeated.toSorted())
  })

  test.each(honoured.map((spelling) => [`${spelling.method} ${spelling.path}`, spelling] as const))(
    '%s is answered the first answer again, and another question is a conflict',
    async (name, spelling) => {
      const { path, question } = await asking.good(spelling, await world.settle(name))
      const repeated = { ...question, headers: { 'Idempotency-Key': `once ${name}` } }
      const first = await asking.ask(spelling, path, repeated)
      const again = await asking.ask(spelling, path, repeated)
      // a message is told as it is now
      if (messages.test(name)) expect(resting(again.json)).toEqual(resting(first.json))
      else expect(again.text).toBe(first.text)
      expect(again.headers.get('location')).toBe(first.headers.get('location'))
      expect([first, again].map(({ headers }) => headers.get('idempotency-replayed'))).toEqual([null, 'true'])
      expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))

      if (spelling.method === 'GET') {
        const other = await asking.ask(spelling, path, { ...repeated, query: { ...question.query, purpose: 'another' } })
        expect(other.json.error).toMatchObject({ status: 409, code: 'idempotency_key_reused', param: 'Idempotency-Key' })
        return
      }
      const [field] = Object.keys(question.body ?? { grace_seconds: 1 })
      const other = await asking.ask(spelling, path, {
        ...repeated,
        body: { ...(question.body as object), [field!]: undefined, x: 1 },
      })
      expect(other.json.error.status).toBe(400)
      // of a body with a password, the fields are compared
      const body =
        name === 'POST /v1/accounts' ? { ...(question.body as object), name: 'Other' } : `${JSON.stringify(question.body ?? {})} `
      const reused = await asking.ask(spelling, path, { ...repeated, body })
      expect(reused.json.error).toMatchObject({ status: 409, code: 'idempotency_key_reused', param: 'Idempotency-Key' })

      // another key of the same account must not be shown a secret that was told to this one
      const stranger = await world.plantKey({ account: world.own.account })
      const elsewhere = await asking.ask(spelling, path, { ...repeated, key: stranger })
      expect(elsewhere.headers.get('idempotency-replayed')).toBe(spelling.route.secret ? null : 'true')
      if (spelling.route.secret) expect(elsewhere.text).not.toBe(first.text)
    },
  )

  test.each(honoured.map((spelling) => [`${spelling.method} ${spelling.path}`, spelling] as const))(
    '%s refuses an Idempotency-Key that is none',
    async (_, spelling) => {
      const { path, question } = await asking.good(spelling, world.own)
      for (const wrong of ['x'.repeat(256), 'tab\there', '\u00e9']) {
        const told = await asking.ask(spelling, path, { ...question, headers: { 'Idempotency-Key': wrong } })
        expect(told.json.error).toMatchObject({ status: 400, param: 'Idempotency-Key' })
      }
    },
  )

  test('another account, and a key bound to one identity, do not hear what this one was told', async () => {
    const headers = { 'Idempotency-Key': 'shared' }
    const first = await world.box.call('POST', '/v1/identities', { metadata: { of: 'first' } }, { headers })
    const other = await world.box.call(
      'POST',
      '/v1/identities',
      { metadata: { of: 'first' } },
      { headers, key: world.foreign.key },
    )
    expect(other.status).toBe(201)
    expect(other.body.id).not.toBe(first.body.id)
    const bound = await world.plantKey({ account: world.own.account, identity: world.sibling.objects['identities/:id']! })
    const refused = await world.box.call('POST', '/v1/identities', { metadata: { of: 'first' } }, { headers, key: bound })
    expect(refused.status).toBe(404)
  })
})

const messages = /\/(?:emails|sms)(?:\/(?:send|:\w+\/(?:reply|forward|restore|cancel)))?$/

/** A message without what goes on by itself: how far it is on its way. */
function resting(message: Record<string, unknown>): Record<string, unknown> {
  const moving = ['status', 'sent_at', 'delivered_at', 'deliveries', 'provider_id', 'error']
  return Object.fromEntries(Object.entries(message).filter(([name]) => !moving.includes(name)))
}

test('fifty at once make one identity', async () => {
  const box = await appliance()
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => box.call('POST', '/v1/identities', {}, { headers: { 'Idempotency-Key': 'storm' } })),
  )
  for (const { status } of answers) expect([201, 409]).toContain(status)
  expect(new Set(answers.filter(({ status }) => status === 201).map(({ body }) => body.id as string)).size).toBe(1)
  expect((await box.call('GET', '/v1/identities')).body.data).toHaveLength(1)
})

test('after a 400 the key is free, for the same call and for a corrected one; a 403, 404 or 409 is answered again', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const { body: shy } = await box.call('POST', '/v1/suppressions', { email: bob['email'] })
  const headers = { 'Idempotency-Key': 'once' }
  const send = (body: object) => box.call('POST', `/v1/identities/${ada.id}/emails`, body, { headers })
  // by its form
  expect((await send({ to: bob['email'], subjekt: 'Hello' })).body.error).toMatchObject({ status: 400, code: 'unknown_field' })
  // by what the box knows
  const letter = { to: bob['email'], subject: 'Hello' }
  expect((await send(letter)).body.error).toMatchObject({ status: 400, code: 'recipient_suppressed' })
  await box.call('DELETE', `/v1/suppressions/${shy.id}`)
  const sent = await send(letter)
  expect([sent.status, sent.headers.get('idempotency-replayed')]).toEqual([201, null])
  const again = await send(letter)
  expect([again.status, again.headers.get('idempotency-replayed'), again.body.id]).toEqual([201, 'true', sent.body.id])

  const name = (key: string) => box.call('POST', '/v1/identities', { name: 'Bob' }, { headers: { 'Idempotency-Key': key } })
  expect((await name('taken')).status).toBe(409)
  await box.call('PATCH', `/v1/identities/${bob.id}`, { name: 'Robert' })
  const kept = await name('taken')
  expect([kept.status, kept.headers.get('idempotency-replayed')]).toEqual([409, 'true'])
  expect((await name('another')).status).toBe(201)
})

test('an account is added once by its key, whatever the password of the repetition, which no answer has', async () => {
  const box = await appliance()
  const headers = { 'Idempotency-Key': 'grace' }
  const grace = { name: 'Grace', email: 'grace@example.com', password: 'a long and quiet evening' }
  const add = (body: object) => box.call('POST', '/v1/accounts', body, { headers })
  const first = await add(grace)
  const again = await add({ ...grace, password: 'another quiet evening' })
  expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 201, 'true'])
  expect(again.body).toEqual(first.body)
  expect(JSON.stringify([first.body, again.body])).not.toContain('evening')
  expect((await add({ ...grace, name: 'Hopper' })).body.error).toMatchObject({ status: 409, code: 'idempotency_key_reused' })
  const { data } = (await box.call('GET', '/v1/accounts')).body
  expect(data.filter((one) => one['name'] === 'Grace')).toHaveLength(1)
  const signedIn = (password: string) =>
    box.call('POST', '/v1/session', { email: grace.email, password }, { key: null, headers: { Origin: box.url } })
  // of the first call only
  expect([(await signedIn(grace.password)).status, (await signedIn('another quiet evening')).status]).toEqual([200, 401])
})

test('what is kept outlives a restart, and of a secret no file holds a readable byte', async () => {
  const box = await appliance()
  const headers = { 'Idempotency-Key': 'kept' }
  const { body: first } = await box.call('POST', '/v1/api-keys', { label: 'kept' }, { headers })
  const { body: rotated } = await box.call('POST', `/v1/api-keys/${first.id}/rotate`, {}, { headers })
  const secrets = [box.key, first.key as string, rotated.key as string]
  expect(holding(box.directory, secrets)).toEqual([])
  await box.restart()
  const again = await box.call('POST', '/v1/api-keys', { label: 'kept' }, { headers })
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  expect(again.body).toEqual(first)
  expect(holding(box.directory, secrets)).toEqual([])
})

test('answers about a deleted identity that a kill left are removed at the next start', async () => {
  const box = await appliance()
  const { body } = await box.call('POST', '/v1/identities', { name: 'Eve' }, { headers: { 'Idempotency-Key': 'kept' } })
  await box.app.stop()
  const file = openStore(join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db'))
  const kept = () => file.prepare('SELECT body FROM idempotency_keys').all()
  expect(kept()).toMatchObject([{ body: expect.stringContaining('Eve') }])
  file.prepare(`UPDATE identities SET status = 'deleted' WHERE id = ?`).run(body.id)
  await box.restart()
  await expect.poll(kept).toEqual([{ body: null }])
  file.close()
})

/** The files below a directory that hold one of these texts. */
function holding(directory: string, texts: string[]): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => {
      const bytes = readFileSync(file)
      return texts.some((text) => bytes.includes(text) || bytes.includes(Buffer.from(text).toString('base64').slice(0, 32)))
    })
}
