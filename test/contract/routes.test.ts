import { afterAll, describe, expect, test } from 'vitest'
import { scopes } from '../../src/core/scopes.ts'
import type { RoutePath } from '../../src/http/route.ts'
import { absent, Asking, isReadOnly, shapeOf } from './asking.ts'
import type { Told } from './described.ts'
import type { Estate } from './estate.ts'
import { inhabit } from './inhabited.ts'

const world = await inhabit()
const asking = new Asking(world)
afterAll(() => world.close())

const { own, sibling, foreign, plantKey, plantSession } = world
const all = named(asking.spellings)
const guarded = all.filter(([, { route }]) => route.scope !== 'public')
const withIds = all.filter(([, { path }]) => path.includes(':'))
// the octets of an upload have no fields: test/transfer
const writing = all.filter(([, { method, route }]) => (method === 'POST' || method === 'PATCH') && route.upload === undefined)

test('what everybody may read from any page needs no key, and changes nothing', () => {
  const documents = asking.spellings.filter(({ route }) => route.document)
  expect(documents.length).toBeGreaterThan(5)
  for (const { method, path, route } of documents) {
    expect([path, method, route.scope, route.rate]).toEqual([path, 'GET', 'public', 'document'])
  }
})

test('there are routes to ask', () => {
  expect(all.length).toBeGreaterThan(20)
})

describe('who may call', async () => {
  const yesterday = new Date(Date.now() - 86_400_000).toISOString()
  const revoked = await plantKey({ account: own.account, revoked_at: yesterday })
  const expired = await plantKey({ account: own.account, expires_at: yesterday })

  test.each(guarded)('%s is 401 without a key that is valid', async (_, spelling) => {
    const path = asking.path(spelling, own)
    const without = await asking.ask(spelling, path, { key: null })
    expect(without.json.error).toMatchObject({ type: 'unauthorized', code: 'missing_key' })
    expect(without.headers.get('www-authenticate')).toMatch(/^Bearer/)
    for (const key of ['garbage', revoked, expired, own.key.slice(0, -1), `${own.key}x`]) {
      const told = await asking.ask(spelling, path, { key })
      expect(told.json.error).toMatchObject({ type: 'unauthorized', code: 'invalid_key' })
    }
    for (const Authorization of [`Basic ${btoa(`${own.key}:`)}`, own.key, 'Bearer', `Bearer ${own.key} ${own.key}`]) {
      expect((await asking.ask(spelling, path, { key: null, headers: { Authorization } })).status).toBe(401)
    }
  })

  test.each(guarded)('%s is 403 for a key with every scope but its own, and admits each of those', async (_, spelling) => {
    const needed = [spelling.route.scope].flat()
    const others = await plantKey({ account: own.account, scopes: scopes.filter((scope) => !needed.includes(scope)) })
    const refused = await asking.ask(spelling, asking.path(spelling, own), { key: others, body: bodyFor(spelling, '{') })
    expect(refused.json.error).toMatchObject({ type: 'forbidden', code: 'insufficient_scope' })
    for (const scope of needed) {
      if (scope === 'public') continue
      const narrow = await plantKey({ account: own.account, scopes: [scope, ...(spelling.route.alsoScope ?? [])] })
      const missing = Object.fromEntries(parameters(spelling).map((name) => [name, absent(objectOf(spelling, own, name))]))
      const told = await asking.ask(spelling, asking.path(spelling, own, missing), { key: narrow, query: { nonsense: 'x' } })
      expect(told.json.error.code).toBe('unknown_parameter')
    }
  })
})

describe('whose things they are', async () => {
  const bound = await plantKey({ account: own.account, identity: sibling.objects['identities/:id']! })

  // a public document is everybody's, and the operator sees everything
  test.each(withIds.filter(([, { route }]) => !route.document && !route.operator))(
    '%s tells another’s objects from absent ones by nothing',
    async (_, spelling) => {
      expect.hasAssertions()
      const { question } = await asking.good(spelling, own)
      for (const other of [foreign, sibling]) {
        const ids = parameters(spelling).filter((name) => objectOf(spelling, own, name) !== objectOf(spelling, other, name))
        // in one's own account another identity is no secret, only what is not its own is
        if (other === sibling && ids.length === 1 && spelling.route.scope !== 'public') continue
        for (const name of ids) {
          const theirs = objectOf(spelling, other, name)
          const one = await asking.ask(spelling, asking.path(spelling, own, { [name]: theirs }), question)
          const none = await asking.ask(spelling, asking.path(spelling, own, { [name]: absent(theirs) }), question)
          if (other === sibling && name === 'id') expect(one.status).toBe(404)
          else expectAlike(one, none, spelling)
        }
      }
      const allTheirs = await asking.ask(spelling, asking.path(spelling, foreign), question)
      const noneAtAll = await asking.ask(spelling, asking.path(spelling, foreign, nowhere(spelling)), question)
      expectAlike(allTheirs, noneAtAll, spelling)
    },
  )

  const operators = all.filter(([, { route }]) => route.operator)
  test.each(operators)(
    '%s is the operator’s: not for another account, nor for a key bound to an identity',
    async (_, spelling) => {
      for (const key of [foreign.key, bound]) {
        const told = await asking.ask(spelling, asking.path(spelling, own), { key })
        expect(told.json.error).toMatchObject({ type: 'forbidden', code: 'operator_only' })
      }
    },
  )

  test.each(withIds.filter(([, { route }]) => route.scope !== 'public' && !route.operator))(
    '%s is not for a key bound to another identity',
    async (_, spelling) => {
      const { question, path } = await asking.good(spelling, own)
      const { cookie: _session, ...asked } = question
      const told = await asking.ask(spelling, path, { ...asked, key: bound })
      const none = await asking.ask(spelling, asking.path(spelling, own, nowhere(spelling)), { ...asked, key: bound })
      // some are for no bound key at all
      const refusal = /^\/v1\/(?:holds|people)\//.test(spelling.path) ? 403 : 404
      expectAlike(told, none, spelling, refusal)
      expect(told.status).toBe(refusal)
    },
  )

  test.each(withIds)('%s names an id that cannot be one', async (_, spelling) => {
    const { question } = await asking.good(spelling, own)
    for (const name of parameters(spelling)) {
      const real = objectOf(spelling, own, name)
      const bad = ['x', `${real}x`, '%20', '..%2f..%2fetc', "1'%20OR%20'1'='1", '%F0%9F%98%80', 'null', '-1', '*']
      if (real.includes('_')) bad.push(real.toUpperCase(), real.slice(0, -1), real.replace('_', ''), '1')
      for (const wrong of bad) {
        const told = await asking.ask(spelling, asking.path(spelling, own, { [name]: wrong }), question)
        expect([wrong, told.status, told.json.error]).toMatchObject([
          wrong,
          404,
          { type: 'not_found', code: 'bad_id', param: name },
        ])
      }
    }
  })
})

test('an id in a query or a body that is another’s reads as one that nobody has', async () => {
  const { box } = world
  const at = `/v1/identities/${own.objects['identities/:id']}`
  const { body: theirs } = await box.call('GET', `/v1/identities/${foreign.objects['identities/:id']}/events`, undefined, {
    key: foreign.key,
  })
  const pairs: [method: string, path: (id: string) => string, body: (id: string) => unknown, id: string][] = [
    ['POST', () => '/v1/api-keys', (identity_id) => ({ identity_id }), foreign.objects['identities/:id']!],
    ['GET', (id) => `${at}/emails?thread_id=${id}`, () => undefined, foreign.objects[':thread_id']!],
    ['GET', (id) => `${at}/events?since=${id}`, () => undefined, theirs.data[0].id],
    ['GET', (id) => `${at}/wait?timeout=0&since=${id}`, () => undefined, theirs.data[0].id],
  ]
  for (const [method, path, body, id] of pairs) {
    const nobodys = absent(id)
    const [one, none] = [await box.call(method, path(id), body(id)), await box.call(method, path(nobodys), body(nobodys))]
    const plain = (answer: typeof one): string => JSON.stringify(answer.body).replaceAll(/req_\w+/g, '')
    expect([path(''), one.status, plain(one)]).toEqual([path(''), none.status, plain(none)])
    expect(plain(one)).not.toContain(id)
  }
})

describe('what is asked', () => {
  test.each(all)('%s refuses a parameter it does not know and names the nearest', async (_, spelling) => {
    const path = asking.path(spelling, own)
    const unknown = await asking.ask(spelling, path, { query: { nonsense: '1' } })
    expect(unknown.json.error).toMatchObject({ status: 400, code: 'unknown_parameter', param: 'nonsense' })
    for (const name of Object.keys(shapeOf(spelling.route.query))) {
      const slip = `${name.slice(0, -1)}${name.at(-1) === 'x' ? 'y' : 'x'}${name.at(-1)}`
      const told = await asking.ask(spelling, path, { query: { [slip]: '1' } })
      expect(told.json.error).toMatchObject({ status: 400, code: 'unknown_parameter', param: slip })
      expect(told.json.error.message).toContain(JSON.stringify(name))
    }
  })

  test.each(all)('%s refuses parameters of a wrong form, repeated, or broken', async (_, spelling) => {
    const { path, question } = await asking.good(spelling, own)
    for (const [name, schema] of Object.entries(shapeOf(spelling.route.query))) {
      const values = [
        '',
        ' ',
        'x',
        '-1',
        '1.5',
        'NaN',
        '1e3',
        '0x10',
        '99999999999999',
        'TRUE',
        "' OR 1=1 --",
        'a\0b',
        '2026-13-40',
        'é'.repeat(2000),
      ]
      for (const value of values.filter((text) => text.includes('\0') || !schema.safeParse(text).success)) {
        const told = await asking.ask(spelling, path, { query: { ...question.query, [name]: value } })
        expect([value, told.status, told.json.error]).toMatchObject([value, 400, { type: 'invalid_request', param: name }])
      }
      const twice = await asking.ask(spelling, `${path}?${name}=1&${name}=2`)
      expect(twice.json.error).toMatchObject({ status: 400, code: 'repeated_parameter', param: name })
    }
    expect((await asking.ask(spelling, `${path}?a=%ff`)).json.error).toMatchObject({ status: 400, code: 'bad_url' })
    expect((await asking.ask(spelling, `${path}?a=%zz`)).json.error).toMatchObject({ status: 400, code: 'bad_url' })
    expect((await asking.ask(spelling, `${path}?__proto__=1`)).json.error).toMatchObject({ status: 400 })
  })

  test.each(writing)('%s refuses a field it does not know and names the nearest', async (_, spelling) => {
    const { path, question } = await asking.good(spelling, own)
    const unknown = await asking.ask(spelling, path, { ...question, body: { ...sent(question.body), nonsense: 1 } })
    expect(unknown.json.error).toMatchObject({ status: 400, code: 'unknown_field', param: 'nonsense' })
    for (const name of Object.keys(shapeOf(spelling.route.body))) {
      const slip = `${name}x`
      const told = await asking.ask(spelling, path, { ...question, body: { ...sent(question.body), [slip]: 1 } })
      expect(told.json.error).toMatchObject({ status: 400, code: 'unknown_field', param: slip })
      expect(told.json.error.message).toContain(JSON.stringify(name))
    }
  })

  test.each(writing)('%s takes nobody’s word for what only the box decides', async (_, spelling) => {
    const { path, question } = await asking.good(spelling, own)
    const fields = Object.keys(shapeOf(spelling.route.body))
    for (const name of [
      'id',
      'account_id',
      'seq',
      'created_at',
      'email',
      'key',
      'hash',
      'key_prefix',
      'stored_bytes',
      'spam',
      'thread_id',
    ]) {
      if (fields.includes(name)) continue
      const told = await asking.ask(spelling, path, { ...question, body: { ...sent(question.body), [name]: 'x' } })
      expect(told.json.error).toMatchObject({ status: 400, code: 'unknown_field', param: name })
    }
  })

  test.each(writing)('%s refuses fields of a wrong type', async (_, spelling) => {
    const { path, question } = await asking.good(spelling, own)
    const values = [
      null,
      true,
      -1,
      1.5,
      9_007_199_254_740_991,
      '',
      ' ',
      'x',
      'x'.repeat(5000),
      'a\nb',
      [],
      [1],
      ['x'],
      {},
      { x: 1 },
      { '': 1 },
    ]
    for (const [name, schema] of Object.entries(shapeOf(spelling.route.body))) {
      for (const value of values.filter((one) => !schema.safeParse(one).success)) {
        const told = await asking.ask(spelling, path, { ...question, body: { ...sent(question.body), [name]: value } })
        expect([name, value, told.status]).toEqual([name, value, 400])
        expect(told.json.error.type).toBe('invalid_request')
        expect(String(told.json.error.param).split('.')[0]).toBe(name)
      }
    }
  })

  test.each(writing)('%s reads one JSON object in UTF-8, and nothing else', async (_, spelling) => {
    const path = asking.path(spelling, own)
    const refused = async (body: string, code: string, headers: Record<string, string> = {}): Promise<void> => {
      const told = await asking.ask(spelling, path, { body, headers })
      expect([body.slice(0, 40), headers, told.json.error.code, told.status]).toEqual([body.slice(0, 40), headers, code, 400])
    }
    const malformed = ['{', '[]', 'null', '"x"', '1', '{"a":1,}', "{'a':1}", '{"a":1}{', '{"a":1,"a":2}', '{"a":1,"\\u0061":2}']
    malformed.push(
      '{"__proto__":{"x":1}}',
      '{"a":1e400}',
      '{"a":9007199254740993}',
      '{"a":-0}',
      '{"a":"\\u0000"}',
      '{"a":"\\ud800"}',
    )
    for (const body of malformed) await refused(body, 'malformed_json')
    await refused(`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`, 'too_deep')
    await refused(`{"a":[${'1,'.repeat(10_000)}1]}`, 'too_many_tokens')
    const limit = spelling.route.limit ?? (spelling.route.scope === 'public' ? 65_536 : 1_048_576)
    await refused(JSON.stringify({ padding: 'x'.repeat(limit + 1) }), 'body_too_large')
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/json; charset=latin1',
    ]) {
      await refused('{}', 'unsupported_media_type', { 'Content-Type': type })
    }
    for (const encoding of ['gzip', 'br', 'deflate', 'identity, gzip', 'x']) {
      await refused('{}', 'unsupported_encoding', { 'Content-Encoding': encoding })
    }
  })

  const bodiless = all.filter(([, { route }]) => route.body === undefined && route.upload === undefined)
  test.each(bodiless)('%s has no fields, and says so', async (_, spelling) => {
    if (spelling.method === 'GET') return
    const told = await asking.ask(spelling, asking.path(spelling, own), { body: { nonsense: 1 } })
    expect(told.json.error).toMatchObject({ status: 400, code: 'unknown_field', param: 'nonsense' })
  })
})

describe('what is answered', () => {
  test.each(all)('%s answers its example as described', async (name, spelling) => {
    const estate = isReadOnly(spelling) ? own : await world.settle(`For ${name}`)
    const { path, question } = await asking.good(spelling, estate)
    const told = await asking.ask(spelling, path, question)
    expect(told.status).toBe(spelling.route.status ?? 200)
    const location = told.headers.get('location')
    expect(location !== null).toBe(spelling.route.location !== undefined)
    if (location === null) return
    // a secret is told once
    const { secret: _, ...shown } = told.json
    expect(resting((await world.box.call('GET', location)).body)).toEqual(resting(shown))
    await world.box.call('DELETE', location)
  })

  const getting = all.filter(([, spelling]) => isReadOnly(spelling))
  test.each(getting)('%s has a HEAD that is the same without the body', async (_, spelling) => {
    const { path, question } = await asking.good(spelling, own)
    // what is counted may have a digit more or less in between: ten times in a row it has not
    let tries = 0
    const [get, head] = await steady(async () => {
      const asked = await asking.ask(spelling, path, question)
      const told = await asking.ask(spelling, path, { ...question, method: 'HEAD' })
      tries += 1
      return asked.size === Number(told.headers.get('content-length')) || tries === 10 ? [asked, told] : undefined
    })
    expect(head.text).toBe('')
    expect(head.status).toBe(200)
    expect(telling(head)).toEqual(telling(get))
    expect(get.headers.get('content-length')).toBe(String(get.size))
  })

  const doing = all.filter(([, { route }]) => route.effect)
  test.each(doing)('%s does something: HEAD is no way to ask for it, and leaves no trace', async (_, spelling) => {
    const { path, question } = await asking.good(spelling, own)
    const events = `/v1/identities/${own.objects['identities/:id']}/events?limit=1`
    const before = (await world.box.call('GET', events)).body
    const told = await asking.ask(spelling, path, { ...question, method: 'HEAD' })
    expect([told.status, told.text]).toEqual([404, ''])
    expect((await asking.ask(spelling, path, { ...question, method: 'HEAD', key: null })).status).toBe(404)
    expect((await world.box.call('GET', events)).body).toEqual(before)
  })

  test.each(withIds.filter(([, { method }]) => method === 'DELETE'))('%s is 404 the second time', async (name, spelling) => {
    const estate = await world.settle(`Gone by ${name}`)
    const path = asking.path(spelling, estate)
    const first = await asking.ask(spelling, path)
    expect(first.json).toMatchObject({ id: path.split('/').findLast((segment) => segment.includes('_')), deleted: true })
    expect((await asking.ask(spelling, path)).status).toBe(404)
  })
})

describe('with a session', async () => {
  const theirs = await plantSession(foreign.account)
  const once = guarded.filter(([, { alias }]) => !alias)

  test.each(once)('%s is answered as with a key, but for what a followed link must not do', async (name, spelling) => {
    const estate = isReadOnly(spelling) ? own : await world.settle(`By cookie ${name}`)
    const { path, question } = await asking.good(spelling, estate)
    const cookie = question.cookie ?? (await plantSession(own.account))
    const charges = spelling.method === 'GET' && path.endsWith('/reveal')
    for (const method of charges ? ['GET', 'HEAD'] : [spelling.method]) {
      const told = await asking.ask(spelling, path, { ...question, cookie, method })
      expect(told.status).toBe(method === 'HEAD' ? 404 : charges ? 403 : (spelling.route.status ?? 200))
      if (method !== 'HEAD' && charges) expect(told.json.error.code).toBe('key_required')
      const location = told.headers.get('location')
      if (location !== null) await world.box.call('DELETE', location)
    }
  })

  test.each(once.filter(([, { method }]) => method !== 'GET'))(
    '%s is refused from a page that is not ours',
    async (_, spelling) => {
      const { path, question } = await asking.good(spelling, own)
      const cookie = question.cookie ?? (await plantSession(own.account))
      const headers = { Origin: 'https://elsewhere.test', 'Sec-Fetch-Site': 'cross-site' }
      const told = await asking.ask(spelling, path, { ...question, cookie, headers })
      expect(told.json.error).toMatchObject({ type: 'forbidden', code: 'csrf' })
    },
  )

  test.each(withIds.filter(([, { route, alias }]) => route.scope !== 'public' && !alias))(
    '%s tells the session of another account nothing',
    async (_, spelling) => {
      const { path, question } = await asking.good(spelling, own)
      const told = await asking.ask(spelling, path, { ...question, cookie: theirs })
      const none = await asking.ask(spelling, asking.path(spelling, own, nowhere(spelling)), { ...question, cookie: theirs })
      const charges = spelling.method === 'GET' && path.endsWith('/reveal')
      expect(told.status).toBe(charges || spelling.route.operator ? 403 : 404)
      expect(told.text.replaceAll(/req_\w+/g, '')).toBe(none.text.replaceAll(/req_\w+/g, ''))
      expect(telling(told)).toEqual(telling(none))
    },
  )
})

test('a path or method that is not described is 404, with a key and 401 or 404 without', async () => {
  const spelling = asking.spellings[0]!
  const patterns = asking.spellings.map(({ method, path }) => ({
    method,
    match: new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`),
  }))
  for (const path of new Set(asking.spellings.map((one) => asking.path(one, own)))) {
    for (const method of ['GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS']) {
      if (patterns.some((known) => known.method === method && known.match.test(path))) continue
      const told = await asking.ask(spelling, path, { method })
      expect([method, path, told.status, told.json.error]).toMatchObject([method, path, 404, { code: 'unknown_path' }])
    }
    for (const other of [
      `${path}/`,
      `${path}/nonsense`,
      path.replace('/v1/', '/v2/'),
      path.replace('/v1/', '/V1/'),
      path.replace('/v1/', '/v1//'),
    ]) {
      if (patterns.some(({ match }) => match.test(other))) continue
      expect([other, (await asking.ask(spelling, other)).status]).toEqual([other, 404])
    }
  }
})

/** What comes out once it is steady; a test's time bounds the tries. */
async function steady<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
  }
}

function named(spellings: RoutePath[]): [string, RoutePath][] {
  return spellings.map((spelling) => [`${spelling.method} ${spelling.path}`, spelling])
}

function parameters({ path }: RoutePath): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
}

/** What the estate has in the place of a parameter. */
function objectOf(spelling: RoutePath, estate: Estate, name: string): string {
  const at = spelling.path.split('/').indexOf(`:${name}`)
  return asking.path(spelling, estate).split('/')[at]!
}

function nowhere(spelling: RoutePath): Record<string, string> {
  return Object.fromEntries(parameters(spelling).map((name) => [name, absent(objectOf(spelling, foreign, name))]))
}

function bodyFor({ method }: RoutePath, text: string): string | undefined {
  return method === 'GET' ? undefined : text
}

function sent(body: unknown): Record<string, unknown> {
  return (body ?? {}) as Record<string, unknown>
}

/** The headers that could tell two answers apart. */
function telling({ headers }: Told): Record<string, string> {
  const moving = new Set(['date', 'x-request-id', 'ratelimit', 'etag', 'last-modified', 'connection', 'keep-alive'])
  return Object.fromEntries([...headers].filter(([name]) => !moving.has(name)))
}

/** A signed URL for another object is not signed at all; everything else is not there. */
function expectAlike(one: Told, none: Told, spelling: RoutePath, status = spelling.route.scope === 'public' ? 403 : 404): void {
  expect([spelling.path, one.status]).toEqual([spelling.path, status])
  expect(one.text.replaceAll(/req_\w+/g, '')).toBe(none.text.replaceAll(/req_\w+/g, ''))
  expect(telling(one)).toEqual(telling(none))
}

/** A resource without what goes on by itself: how far a message is on its way. */
function resting(resource: Record<string, unknown>): Record<string, unknown> {
  const moving = ['status', 'sent_at', 'deliveries']
  return 'deliveries' in resource
    ? Object.fromEntries(Object.entries(resource).filter(([name]) => !moving.includes(name)))
    : resource
}
