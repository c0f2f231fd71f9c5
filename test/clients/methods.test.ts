import { readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { build } from 'esbuild'
import { methods, Pillarbox } from '../../clients/typescript/src/index.ts'
import { clientFiles } from '../../src/commands/docs/docs.ts'
import { isIdempotent, routePaths } from '../../src/http/route.ts'
import { Asking, isReadOnly } from '../contract/asking.ts'
import { inhabit } from '../contract/inhabited.ts'

const world = await inhabit()
const asking = new Asking(world)
afterAll(() => world.close())

const clients = new URL('../../clients/', import.meta.url)
const guarded = routePaths(world.box.app.routes).filter(({ route, alias }) => route.scope !== 'public' && !alias)
const named = guarded.filter(({ route }) => route.sdk !== undefined)

/** Calls that no client library makes, and why. */
const unnamed: Record<string, string> = {
  'GET /v1/cards/:id/reveal': 'the same as POST, for clients that only know GET',
  'POST /v1/identities/:id/logins': 'the libraries have no logins yet: their size is limited',
  'GET /v1/identities/:id/logins': 'the libraries have no logins yet: their size is limited',
  'GET /v1/logins/:id': 'the libraries have no logins yet: their size is limited',
  'PATCH /v1/logins/:id': 'the libraries have no logins yet: their size is limited',
  'POST /v1/logins/:id/reveal': 'the libraries have no logins yet: their size is limited',
  'DELETE /v1/logins/:id': 'the libraries have no logins yet: their size is limited',
  'GET /v1/session': 'of a browser’s session',
  'DELETE /v1/session': 'of a browser’s session',
  'POST /v1/account/stop': 'of a person, in the page',
  'POST /v1/account/resume': 'of a person, in the page',
  'POST /v1/account/password': 'of a person, in the page',
  'POST /v1/account/totp': 'of a person, in the page',
  'POST /v1/account/totp/confirm': 'of a person, in the page',
  'DELETE /v1/account/totp': 'of a person, in the page',
  'GET /v1/people': 'of a person, in the page',
  'PATCH /v1/people/:id': 'of a person, in the page',
  'DELETE /v1/people/:id': 'of a person, in the page',
  'POST /v1/people/invitations': 'of a person, in the page',
  'GET /v1/people/invitations': 'of a person, in the page',
  'DELETE /v1/people/invitations/:id': 'of a person, in the page',
  'GET /v1/policy': 'of a person; who is held does not see it',
  'PATCH /v1/policy': 'of a person; who is held does not see it',
  'GET /v1/identities/:id/policy': 'of a person; who is held does not see it',
  'PATCH /v1/identities/:id/policy': 'of a person; who is held does not see it',
  'GET /v1/audit/box': 'of the operator, by the command',
  'POST /v1/accounts/:id/password': 'only by the local socket',
  'POST /v1/accounts/:id/setup-link': 'only by the local socket',
}

test('every call that needs a key is a method of the client libraries, or is listed with the reason why not', () => {
  const without = guarded.filter(({ route }) => route.sdk === undefined).map(({ method, path }) => `${method} ${path}`)
  expect(without.toSorted()).toEqual(Object.keys(unnamed).toSorted())
})

test('the names of the methods are of one form, and each is there once', () => {
  const names = named.map(({ route }) => route.sdk!)
  expect(names.filter((name) => !/^[a-z]+([A-Z][a-z]+)*\.[a-z]+([A-Z][a-z0-9]+)*\d*$/.test(name))).toEqual([])
  expect(new Set(names).size).toBe(names.length)
  expect(names.length).toBeGreaterThan(110)
})

test('what is printed of the client libraries is what the routes say (npm run docs writes it)', async () => {
  for (const [file, text] of await clientFiles())
    expect([file, readFileSync(new URL(file, clients), 'utf8')]).toEqual([file, text])
})

test.each(named.map((spelling) => [spelling.route.sdk!, spelling] as const))('%s makes its call', async (sdk, spelling) => {
  const { method, path: declared, route } = spelling
  const estate = isReadOnly(spelling) ? world.own : await world.settle(`${method} ${declared}`)
  const { path, question } = await asking.good(spelling, estate)
  const requests: { url: URL; init: RequestInit }[] = []
  const client = new Pillarbox({
    baseUrl: world.box.url,
    apiKey: estate.key,
    retries: 0,
    fetch: (url, init) => {
      requests.push({ url: new URL(url), init: init! })
      return fetch(url, init)
    },
  })
  const [group, name] = sdk.split('.') as [string, string]
  const real = path.split('/')
  const ids = declared.split('/').flatMap((part, index) => (part.startsWith(':') ? [real[index]!] : []))
  const input = route.upload === undefined ? (question.body ?? question.query) : Buffer.from(question.body as string)
  const call = (client as unknown as Record<string, Record<string, (...given: unknown[]) => Promise<unknown>>>)[group]![name]!
  const answer = await call(...ids, ...(route.query || route.body || route.upload ? [input] : []), { timeout: 55 })
  expect(requests).toHaveLength(1)
  const [{ url, init }] = requests as [(typeof requests)[0]]
  expect([init.method, url.pathname]).toEqual([method, path])
  expect(new Headers(init.headers as Record<string, string>).has('Idempotency-Key')).toBe(isIdempotent(route))
  if (route.download?.startsWith('text/')) expect(answer).toBeTypeOf('string')
  else if (route.download) expect(answer).toBeInstanceOf(Uint8Array)
  else expect(answer).toBeTypeOf('object')
})

test('a list can be iterated to its end, whatever its pages hold', async () => {
  const client = new Pillarbox({ baseUrl: world.box.url, apiKey: world.own.key })
  const all = []
  for await (const { id } of client.identities.iterate({ limit: 3 })) all.push(id)
  const { data } = await client.identities.list({ limit: 200 })
  expect(all.length).toBeGreaterThan(3)
  expect(all).toEqual(data.map(({ id }) => id))
  const events = []
  for await (const { id } of client.identities.iterateEvents(world.own.objects['identities/:id']!, { limit: 1, offset: 1 }))
    events.push(id)
  const { data: listed } = await client.identities.events(world.own.objects['identities/:id']!, { limit: 200 })
  expect(events).toEqual(listed.slice(1).map(({ id }) => id))
  expect(
    Object.values(methods)
      .join('\n')
      .match(/ page$/gm)!.length,
  ).toBeGreaterThan(20)
})

test('the library is small', async () => {
  const entry = new URL('typescript/src/index.ts', clients).pathname
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
  })
  expect(outputFiles[0]!.contents.length).toBeLessThan(16_000)
  expect(outputFiles[0]!.text).not.toMatch(/from"|import"|require\(/)
})
