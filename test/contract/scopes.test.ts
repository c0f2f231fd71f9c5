import { afterAll, describe, expect, test } from 'vitest'
import { iso } from '../../src/core/clock.ts'
import { type Scope, scopes } from '../../src/core/scopes.ts'
import { isIdempotent, type RoutePath } from '../../src/http/route.ts'
import { Asking, needsSession } from './asking.ts'
import { inhabit } from './inhabited.ts'
import { rights as rows } from './rights-table.ts'

const world = await inhabit()
const asking = new Asking(world)
afterAll(() => world.close())

const named = asking.spellings.map((spelling): [string, RoutePath] => [`${spelling.method} ${spelling.path}`, spelling])
const guarded = named.filter(([name]) => rows.get(name)?.needs.length !== 0)

test('the table has every call there is, and no other', () => {
  expect(named.map(([name]) => name).toSorted()).toEqual([...rows.keys()].toSorted())
})

describe('with one scope alone', async () => {
  const { own, sibling, foreign, plantKey } = world
  const identity = own.objects['identities/:id']!
  const holders = await Promise.all(
    scopes.map(async (scope) => ({
      scope,
      free: await plantKey({ account: own.account, scopes: [scope] }),
      bound: await plantKey({ account: own.account, scopes: [scope], identity }),
      elsewhere: await plantKey({ account: own.account, scopes: [scope], identity: sibling.objects['identities/:id']! }),
      foreign: await plantKey({ account: foreign.account, scopes: [scope] }),
      expired: await plantKey({ account: own.account, scopes: [scope], expires_at: iso(Date.now() - 1000) }),
    })),
  )
  const every = await plantKey({ account: own.account })

  test.each(guarded)('%s admits whom the table says, and nobody else', async (name, spelling) => {
    const { needs, operator } = rows.get(name)!
    const path = asking.path(spelling, own)
    // whoever is admitted is told of the parameter, before anything is looked at or done
    const codeFor = async (key: string): Promise<string> =>
      (await asking.ask(spelling, path, { key, query: { nonsense: 'x' } })).json.error.code as string
    const told: Record<string, string[]> = {}
    const expected: Record<string, string[]> = {}
    for (const { scope, ...keys } of holders) {
      const admitted = needs.every((any) => any.includes(scope))
      const answer = admitted ? 'unknown_parameter' : 'insufficient_scope'
      const others = operator ? 'operator_only' : answer
      told[scope] = []
      for (const key of [keys.free, keys.bound, keys.elsewhere, keys.foreign, keys.expired]) told[scope].push(await codeFor(key))
      expected[scope] = [answer, others, others, others, 'invalid_key']
    }
    expect(told).toEqual(expected)
    if (!needsSession(spelling)) expect(await codeFor(every)).toBe('unknown_parameter')
  })
})

describe('a key that may write and not read', () => {
  const writes = guarded.filter(([name]) => rows.get(name)?.shows !== undefined)

  test.each(writes)('%s shows it what the table says', async (name, spelling) => {
    const { needs, shows } = rows.get(name)!
    const estate = await world.settle(`Written ${name}`)
    // what a webhook hears its changer must be able to read; a key is changed by who holds its scopes
    const beside: Scope[] = spelling.path.startsWith('/v1/webhooks')
      ? ['messages:read']
      : spelling.path.startsWith('/v1/api-keys')
        ? ['identities:read']
        : []
    const key = await world.plantKey({ account: world.own.account, scopes: [needs[0]!.at(-1)!, ...beside] })
    const { path, question } = await asking.good(spelling, estate)
    const bodies: Record<string, unknown> = {
      'POST /v1/api-keys': { scopes: beside },
      'POST /v1/webhooks': { url: 'https://receiver.test/hook', events: ['email.received'] },
    }
    const body = bodies[name] ?? question.body
    const told = await world.box.call(spelling.method, path, body, { key, headers: { 'Idempotency-Key': 'first' } })
    expect([told.status, told.body.error?.code]).toEqual([spelling.route.status ?? 200, undefined])
    if (shows === 'all') return
    expect(Object.keys(told.body).toSorted()).toEqual(shows!.toSorted())
    if (!isIdempotent(spelling.route) || spelling.route.secret) return
    // what a wider key was answered it is not shown by repeating the call, nor the other way round
    const again = await asking.good(spelling, await world.settle(`Repeated ${name}`))
    const twice = { headers: { 'Idempotency-Key': 'again' } }
    const [whole, replayed] = [
      await world.box.call(spelling.method, again.path, again.question.body, twice),
      await world.box.call(spelling.method, again.path, again.question.body, { ...twice, key }),
    ]
    expect([whole.status, replayed.headers.get('idempotency-replayed')]).toEqual([told.status, 'true'])
    expect(Object.keys(replayed.body).toSorted()).toEqual(shows!.toSorted())
  })

  test('does not send on what it cannot read: an answer takes subject and references of the e-mail it answers', async () => {
    const { own, box } = world
    const identity = own.objects['identities/:id']!
    const input = { to: 'abuse@pillarbox.test', in_reply_to: own.objects[':email_id'] }
    for (const scope of ['emails:write', 'messages:write'] as const) {
      const key = await world.plantKey({ account: own.account, scopes: [scope, 'sms:read'] })
      const told = await box.call('POST', `/v1/identities/${identity}/emails`, input, { key })
      expect([told.status, told.body.error]).toMatchObject([403, { code: 'insufficient_scope' }])
      expect((await box.call('POST', `/v1/identities/${identity}/emails`, { to: input.to }, { key })).status).toBe(201)
    }
    const both = await world.plantKey({ account: own.account, scopes: ['emails:write', 'emails:read'] })
    expect((await box.call('POST', `/v1/identities/${identity}/emails`, input, { key: both })).body).toMatchObject({
      subject: 'Re: Letter to Own',
    })
  })
})
