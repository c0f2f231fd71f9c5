import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scopes } from '../../src/core/scopes.ts'
import type { RoutePath } from '../../src/http/route.ts'
import { deliver, message } from '../support/appliance.ts'
import { absent, Asking, isReadOnly, type Question } from './asking.ts'
import type { Estate } from './estate.ts'
import { inhabit } from './inhabited.ts'

/**
 * The calls that the API document names (its section 4), written by hand from it and never from the declarations of the routes: method, path, the
 * status of success, and of the errors of its section 7 those that a caller can bring about besides 400, 401, 403 and 429, which every call has.
 * `404`: the path names an object; `409`: it is done already, or its state does not allow it. `list`: the answer is `{data, has_more}`, with `limit`.
 */
const table = `
POST   /v1/identities                                 201  409
GET    /v1/identities                                 200  list
GET    /v1/identities/:id                             200  404
PATCH  /v1/identities/:id                             200  404 409
DELETE /v1/identities/:id                             200  404
POST   /v1/identities/:id/phone                       200  404 409
GET    /v1/identities/:id/events                      200  404 list
GET    /v1/identities/:id/messages                    200  404 list
POST   /v1/identities/:id/token                       200  404
GET    /v1/identities/:id/threads                     200  404 list
GET    /v1/identities/:id/threads/:thread_id          200  404
GET    /v1/identities/:id/reputation                  200  404
POST   /v1/identities/:id/reputation/credential       200  404
POST   /v1/identities/:id/events                      201  404

GET    /v1/identities/:id/emails                      200  404 list
POST   /v1/identities/:id/emails                      201  404 409
POST   /v1/identities/:id/emails/send                 201  404 409
GET    /v1/identities/:id/emails/:email_id            200  404
PATCH  /v1/identities/:id/emails/:email_id            200  404
DELETE /v1/identities/:id/emails/:email_id            200  404
GET    /v1/identities/:id/emails/search               200  404 list

GET    /v1/identities/:id/sms                         200  404 list
POST   /v1/identities/:id/sms                         201  404 409
POST   /v1/identities/:id/sms/send                    201  404 409
GET    /v1/identities/:id/sms/:sms_id                 200  404
PATCH  /v1/identities/:id/sms/:sms_id                 200  404
DELETE /v1/identities/:id/sms/:sms_id                 200  404

POST   /v1/identities/:id/cards                       201  404
GET    /v1/identities/:id/cards                       200  404 list
GET    /v1/cards/:id                                  200  404
POST   /v1/cards/:id/reveal                           200  404
GET    /v1/cards/:id/reveal                           200  404
POST   /v1/cards/:id/freeze                           200  404 409
POST   /v1/cards/:id/unfreeze                         200  404 409
POST   /v1/cards/:id/cancel                           200  404 409
GET    /v1/cards/:id/limits                           200  404
PATCH  /v1/cards/:id/limits                           200  404 409
GET    /v1/cards/:id/transactions                     200  404 list

POST   /v1/identities/:id/totp                        201  404
GET    /v1/identities/:id/totp                        200  404 list
GET    /v1/identities/:id/totp/:totp_id/code          200  404
DELETE /v1/identities/:id/totp/:totp_id               200  404

POST   /v1/realtime/token                             200

GET    /v1/billing/subscription                       200
GET    /v1/api-keys                                   200  list
POST   /v1/api-keys                                   201
DELETE /v1/api-keys/:id                               200  404
POST   /v1/webhooks                                   201
GET    /v1/webhooks                                   200  list
GET    /v1/webhooks/:id                               200  404
PATCH  /v1/webhooks/:id                               200  404
DELETE /v1/webhooks/:id                               200  404
GET    /v1/webhooks/:id/deliveries                    200  404 list
POST   /v1/domains                                    201  409
GET    /v1/domains                                    200  list
GET    /v1/domains/:id                                200  404
POST   /v1/domains/:id/verify                         200  404
DELETE /v1/domains/:id                                200  404 409
POST   /v1/agents                                     201  409
GET    /v1/agents                                     200  list
GET    /v1/agents/:id                                 200  404
PATCH  /v1/agents/:id                                 200  404 409
DELETE /v1/agents/:id                                 200  404
GET    /v1/agents/:id/reputation                      200  404
GET    /v1/agents/:id/did.json                        200  404
POST   /v1/agents/:id/erc8004                         201  404 409
GET    /v1/agents/:id/erc8004                         200  404 list
DELETE /v1/agents/:id/erc8004/:link_id                200  404
POST   /v1/verify/token                               200
POST   /v1/trust/evaluate                             200
`

interface Row {
  success: number
  errors: number[]
  list: boolean
}

const rows = new Map(
  table
    .split('\n')
    .filter((line) => line !== '')
    .map((line): [string, Row] => {
      const [method, path, success, ...rest] = line.trim().split(/\s+/)
      const errors = rest.filter((word) => word !== 'list').map(Number)
      return [`${method} ${path}`, { success: Number(success), errors, list: rest.includes('list') }]
    }),
)

/** How each conflict comes about, on an estate of its own: the call again, or after another, or with a name that is taken. */
const conflicts: Record<string, { before?: [method: string, path: string, body?: object][]; twice?: true; body?: object }> = {
  'POST /v1/identities': { body: { name: 'Own' } },
  'PATCH /v1/identities/:id': { body: { name: 'Own' } },
  'POST /v1/identities/:id/phone': { twice: true },
  'POST /v1/identities/:id/emails': { body: { to: 'bob@elsewhere.test' } },
  'POST /v1/identities/:id/emails/send': { body: { to: 'bob@elsewhere.test' } },
  'POST /v1/identities/:id/sms': { before: [['DELETE', '/v1/identities/:id/phone']] },
  'POST /v1/identities/:id/sms/send': { before: [['DELETE', '/v1/identities/:id/phone']] },
  'POST /v1/cards/:id/freeze': { before: [['POST', '/v1/cards/:id/cancel']] },
  'POST /v1/cards/:id/unfreeze': { twice: true },
  'POST /v1/cards/:id/cancel': { twice: true },
  'PATCH /v1/cards/:id/limits': { before: [['POST', '/v1/cards/:id/cancel']] },
  // the example was added before
  'POST /v1/domains': {},
  'DELETE /v1/domains/:id': { before: [['POST', '/v1/identities', { email_domain: ':domain' }]] },
  'POST /v1/agents': { twice: true },
  'PATCH /v1/agents/:id': { body: { handle: 'postmaster' } },
  'POST /v1/agents/:id/erc8004': { twice: true },
}

const world = await inhabit()
const asking = new Asking(world)
afterAll(() => world.close())
const { own, foreign, box, plantKey } = world
const spellings = new Map(asking.spellings.map((spelling) => [`${spelling.method} ${spelling.path}`, spelling]))
const named = [...rows].map(([name, row]) => [name, row, spellings.get(name)!] as const)
const { body: described } = await box.call<{ paths: Record<string, Record<string, { responses: object }>> }>(
  'GET',
  '/v1/openapi.json?all=true',
  undefined,
  { key: null },
)

/** The type and the status of an error of the API document. */
const types: Record<number, string> = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  429: 'rate_limited',
}

describe('the status codes of the API document', () => {
  test('the box has each of its calls', () => {
    expect([...rows.keys()].filter((name) => !spellings.has(name))).toEqual([])
  })

  test.each(named)('%s', async (name, { success, errors }, spelling) => {
    const fresh = isReadOnly(spelling) ? own : await world.settle(`Success ${name}`)
    const good = await asking.good(spelling, fresh)
    const answer = await asking.ask(spelling, good.path, good.question)
    expect([answer.status, answer.json?.error ?? undefined]).toEqual([success, undefined])

    const isKept = isReadOnly(spelling) && !errors.includes(409)
    const estate = isKept ? own : await world.settle(`Status ${name}`)
    const path = asking.path(spelling, estate)
    const told: Record<string, unknown> = {}
    const note = async (status: number, question: Question, at = path): Promise<Headers> => {
      const { json, status: got, headers } = await asking.ask(spelling, at, question)
      told[status] = [got, json?.error?.type, json?.error?.status]
      return headers
    }
    const open = spelling.route.scope === 'public'
    await note(400, { query: { nonsense: 'x' } })
    if (!open) {
      await note(401, { key: null })
      const needed: string[] = [spelling.route.scope].flat()
      await note(403, {
        key: await plantKey({ account: own.account, scopes: scopes.filter((one) => !needed.includes(one)) }),
      })
      const key = await plantKey({ account: own.account, rate_limit: 1 })
      await asking.ask(spelling, path, { key, query: { nonsense: 'x' } })
      const headers = await note(429, { key })
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    }
    if (errors.includes(404)) {
      const [, parameter] = /:(\w+)/.exec(spelling.path)!
      const object = path.split('/')[spelling.path.split('/').indexOf(`:${parameter}`)]!
      const { question } = await asking.good(spelling, estate)
      await note(404, question, asking.path(spelling, estate, { [parameter!]: absent(object) }))
    }
    if (errors.includes(409)) told[409] = await conflicting(name, spelling, estate)
    const expected = [400, ...(open ? [] : [401, 403, 429]), ...errors].map((status) => [status, [status, types[status], status]])
    expect(told).toEqual(Object.fromEntries(expected))
    const { responses } = described.paths[spelling.path.replaceAll(/:(\w+)/g, '{$1}')]![spelling.method.toLowerCase()]!
    expect(Object.keys(responses)).toEqual(
      expect.arrayContaining([success, 400, 429, ...(open ? [] : [401, 403]), ...errors].map(String)),
    )
  })
})

describe('the lists of the API document', () => {
  const lists = named.filter(([, { list }]) => list)
  const as = { key: foreign.key }

  // of everything a second one, in an account where no other test adds any
  beforeAll(async () => {
    const { objects } = foreign
    const of = `/v1/identities/${objects['identities/:id']}`
    const { email, phone_number } = (await box.call('GET', of, undefined, as)).body
    await deliver(box.smtp, {
      to: email,
      raw: message({ Subject: 'A second letter' }, 'The verification code of the invoice is 112233.'),
    })
    await box.call('POST', '/v1/sms/loopback/inject', { from: '+15550100199', to: phone_number, body: 'One more.' }, as)
    await box.call('POST', `/v1/webhooks/${objects['webhooks/:id']}/test`, undefined, as)
    for (const name of [
      'identities/:id/totp',
      'identities/:id/cards',
      'cards/:id/reveal',
      'cards/:id/reveal',
      'api-keys',
      'webhooks',
      'domains',
    ]) {
      await another(`POST /v1/${name}`)
    }
    await another('POST /v1/agents')
    await another('POST /v1/agents/:id/erc8004')
    await box.settled()
  })

  test.each(lists)('%s has data and has_more, in pages of limit that join without a gap', async (name, _row, spelling) => {
    const { path, question } = await asking.good(spelling, foreign)
    const page = async (query: Record<string, string>) => {
      const { status, json } = await asking.ask(spelling, path, { ...question, ...as, query: { ...question.query, ...query } })
      expect([status, json.error]).toEqual([200, undefined])
      return json as { data: { id: string }[]; has_more: boolean; next_cursor: string | null }
    }
    const whole = await page({ limit: '200' })
    expect([whole.data.length > 1, whole.has_more]).toEqual([true, false])
    const rowsOf: unknown[] = []
    for (let cursor: string | null = null, more = true; more;) {
      const { data, has_more, next_cursor } = await page({ limit: '1', ...(cursor === null ? {} : { cursor }) })
      expect(data).toHaveLength(1)
      rowsOf.push(...data)
      expect([name, has_more]).toEqual([name, rowsOf.length < whole.data.length])
      cursor = next_cursor
      more = has_more
    }
    expect(rowsOf).toEqual(whole.data)
    for (const limit of ['0', '201', '-1', '1.5', 'x', '']) {
      const { json } = await asking.ask(spelling, path, { ...question, ...as, query: { ...question.query, limit } })
      expect([limit, json.error]).toMatchObject([limit, { status: 400, type: 'invalid_request', param: 'limit' }])
    }
  })
})

async function conflicting(name: string, spelling: RoutePath, estate: Estate): Promise<unknown[]> {
  const { before = [], twice, body } = conflicts[name]!
  const { path, question } = await asking.good(spelling, estate)
  for (const [method, at, input] of before) {
    const placed = asking.path({ path: at }, estate)
    const domain = estate.objects['domains/:id']
    const email_domain = input && (await box.call('GET', `/v1/domains/${domain}`)).body['name']
    const done = await box.call(method, placed, input && { email_domain })
    expect(done.body.error).toBeUndefined()
  }
  const asked = { ...question, ...(body === undefined ? {} : { body }) }
  if (twice) expect((await asking.ask(spelling, path, asked)).status).toBe(rows.get(name)!.success)
  const { status, json } = await asking.ask(spelling, path, asked)
  return [status, json?.error?.type, json?.error?.status]
}

async function another(name: string): Promise<void> {
  const spelling = spellings.get(name)!
  const { path, question } = await asking.good(spelling, foreign)
  const { json } = await asking.ask(spelling, path, { ...question, key: foreign.key })
  expect([name, json.error]).toEqual([name, undefined])
}
