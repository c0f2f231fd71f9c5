import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { Readable } from 'node:stream'
import { afterAll, describe, expect, test } from 'vitest'
import { openAppliance } from '../support/appliance.ts'
import { blob } from '../support/card.ts'
import { cardsOf, inside, settled, type Settled, stored } from './settled.ts'

const opened = await openAppliance()
const shared: Settled = { box: opened.box, at: await cardsOf(opened.box, 'Shared') }
afterAll(() => opened.close())

describe('revealing', () => {
  test('by POST and by GET: the data, the card, and what was written down of it', async () => {
    const world = await settled()
    const { box } = world
    const encrypted_data = blob()
    const path = await stored(world, { encrypted_data, budget_cents: 1000 })
    const { body: keys } = await box.call('GET', '/v1/api-keys')
    const headers = { 'User-Agent': `agent/1 ${'x'.repeat(2000)}` }
    const posted = await box.call('POST', `${path}/reveal`, { amount_cents: 300, purpose: ' train to Lyon ' }, { headers })
    const got = await box.call('GET', `${path}/reveal?amount_cents=700&purpose=hotel`)
    for (const { status, headers: told } of [posted, got]) {
      expect(status).toBe(200)
      expect(told.get('cache-control')).toBe('no-store')
    }
    const { body: now } = await box.call('GET', path)
    expect(now['spent_cents']).toBe(1000)
    expect(got.body).toEqual({ encrypted_data, card: now, transaction: expect.anything() })
    expect(posted.body['transaction']).toEqual({
      id: expect.stringMatching(/^txn_/),
      card_id: now.id,
      type: 'reveal',
      amount_cents: 300,
      allowed: true,
      reason: null,
      reveal_id: null,
      spent_cents: 300,
      key_id: keys.data[0].id,
      ip: '127.0.0.1',
      user_agent: headers['User-Agent'].slice(0, 500),
      purpose: 'train to Lyon',
      description: null,
      created_at: '2026-11-20T10:05:00.000Z',
    })
    const { body: list } = await box.call('GET', `${path}/transactions`)
    expect(list.data).toEqual([got.body['transaction'], posted.body['transaction']])
    const { body: events } = await box.call('GET', `/v1/identities/${now['identity_id']}/events?type=card.revealed`)
    expect(events.data.map(({ data }) => data as object)).toEqual([
      { ...now, transaction: got.body['transaction'] },
      { ...now, spent_cents: 300, transaction: posted.body['transaction'] },
    ])
  })

  test('a repetition is refused once a policy refuses it', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 1000 })
    const again = () => box.call('POST', `${path}/reveal`, { amount_cents: 1 }, { headers: { 'Idempotency-Key': 'once' } })
    expect((await again()).status).toBe(200)
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { channel: ['card'] }, action: 'refuse' }] })
    const { status, body } = await again()
    expect([status, body.error?.code]).toEqual([403, 'policy_refused'])
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [] })
    expect((await again()).status).toBe(200)
    const { body: list } = await box.call('GET', `${path}/transactions`)
    expect(list.data.map(({ reason }) => reason as string)).toEqual(['repeated', 'policy_refused', null])
  })

  test('without an amount also when more is spent than the budget that is left', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 1000 })
    await box.call('POST', `${path}/reveal`, { amount_cents: 800 })
    await box.call('PATCH', `${path}/limits`, { budget_cents: 100 })
    expect((await box.call('POST', `${path}/reveal`)).status).toBe(200)
    expect((await box.call('POST', `${path}/reveal`, { amount_cents: 0 })).body.error.code).toBe('budget_exceeded')
  })

  test('refused for the budget, for the state, and written down all the same', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 1000 })
    const reveal = async (amount_cents?: number): Promise<unknown> => {
      const { status, body } = await box.call('POST', `${path}/reveal`, { amount_cents })
      return status === 200 ? 200 : body.error.code
    }
    expect(await reveal(1001)).toBe('budget_exceeded')
    expect(await reveal(1000)).toBe(200)
    expect(await reveal(1)).toBe('budget_exceeded')
    expect(await reveal(0)).toBe(200)
    expect(await reveal()).toBe(200)
    await box.call('POST', `${path}/freeze`)
    expect(await reveal()).toBe('card_frozen')
    await box.call('POST', `${path}/cancel`)
    expect(await reveal(1)).toBe('card_cancelled')
    const { body } = await box.call('GET', `${path}/transactions`)
    expect(
      body.data.map(({ amount_cents, allowed, reason, spent_cents }) => [amount_cents, allowed, reason, spent_cents]),
    ).toEqual([
      [1, false, 'card_cancelled', 1000],
      [null, false, 'card_frozen', 1000],
      [null, true, null, 1000],
      [0, true, null, 1000],
      [1, false, 'budget_exceeded', 1000],
      [1000, true, null, 1000],
      [1001, false, 'budget_exceeded', 0],
    ])
  })

  test('every attempt, refused ones too, is written down with key, address, user agent and time', async () => {
    const world = await settled()
    const { box, clock } = world
    const path = await stored(world, { budget_cents: 10 })
    const { body: narrow } = await box.call('POST', '/v1/api-keys', { label: 'narrow', scopes: ['cards:read'] })
    const attempt = async (method: string, agent: string): Promise<void> => {
      clock.advance(1000)
      const query = method === 'GET' ? '?amount_cents=11&purpose=why' : ''
      const body = method === 'GET' ? undefined : { amount_cents: 11, purpose: 'why' }
      const options = { key: narrow.key as string, headers: { 'User-Agent': agent } }
      expect((await box.call(method, `${path}/reveal${query}`, body, options)).status).toBe(403)
    }
    await attempt('POST', 'agent/1')
    await box.call('POST', `${path}/freeze`)
    await attempt('GET', 'agent/2')
    await box.call('POST', `${path}/cancel`)
    await attempt('POST', 'agent/3')
    const { body } = await box.call('GET', `${path}/transactions?type=reveal`)
    const common = { type: 'reveal', amount_cents: 11, allowed: false, key_id: narrow.id, ip: '127.0.0.1', purpose: 'why' }
    expect(body.data).toMatchObject([
      { ...common, reason: 'card_cancelled', user_agent: 'agent/3', created_at: '2026-11-20T10:05:03.000Z' },
      { ...common, reason: 'card_frozen', user_agent: 'agent/2', created_at: '2026-11-20T10:05:02.000Z' },
      { ...common, reason: 'budget_exceeded', user_agent: 'agent/1', created_at: '2026-11-20T10:05:01.000Z' },
    ])
    // what was handed out is an event; what was not is none
    const { body: events } = await box.call('GET', `${world.at.replace('/cards', '/events')}?type=card.revealed`)
    expect(events.data).toEqual([])
  })

  test.each([
    ['POST', { amount_cents: -1 }],
    ['POST', { amount_cents: 1.5 }],
    ['POST', { amount_cents: '100' }],
    ['POST', { amount_cents: null }],
    ['POST', { purpose: '' }],
    ['POST', { purpose: 'x'.repeat(501) }],
    ['POST', { purpose: 'two\nlines' }],
    ['GET', { amount_cents: '-1' }],
    ['GET', { amount_cents: '1e3' }],
    ['GET', { amount_cents: '9007199254740992' }],
    ['GET', { purpose: '\u202e' }],
  ])('%s with %j is refused and leaves nothing', async (method, input) => {
    const world = shared
    const { box } = world
    const path = await stored(world)
    const query = method === 'GET' ? `?${new URLSearchParams(input as Record<string, string>).toString()}` : ''
    const { status, body } = await box.call(method, `${path}/reveal${query}`, method === 'GET' ? undefined : input)
    expect([status, body.error.param]).toEqual([400, Object.keys(input)[0]])
    expect((await box.call('GET', `${path}/transactions`)).body.data).toEqual([])
  })

  test('HEAD is no way to ask: it charges nothing, and is no attempt', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 1000 })
    for (const headers of [{}, { 'Idempotency-Key': 'looked' }]) {
      const { status } = await box.call('HEAD', `${path}/reveal?amount_cents=1000`, undefined, { headers })
      expect(status).toBe(404)
    }
    expect((await box.call('GET', `${path}/limits`)).body['spent_cents']).toBe(0)
    expect((await box.call('GET', `${path}/transactions`)).body.data).toEqual([])
    const headers = { 'Idempotency-Key': 'looked' }
    expect((await box.call('GET', `${path}/reveal?amount_cents=1000`, undefined, { headers })).status).toBe(200)
  })

  test('by GET only with a key: a session is told to POST', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world)
    const routes = box.app.routes.filter((route) => route.path === '/cards/:id/reveal')
    const [known] = inside<{ account_id: string }>(box, 'SELECT account_id FROM cards')
    const { account_id } = known!
    const caller = {
      account_id,
      key_id: null,
      secret: 0,
      scopes: new Set(),
      identity_id: null,
      rate_limit: 0,
      until: Infinity,
      ip: '127.0.0.1',
      user_agent: '',
    }
    const ask = (method: string): Promise<unknown> =>
      routes
        .find((route) => route.method === method)!
        .handle({
          params: { id: path.split('/').at(-1)! },
          query: {} as never,
          body: {} as never,
          caller: caller as never,
          raw: { bytes: Buffer.alloc(0), headers: {}, search: '' },
          upload: { octets: Readable.from([]), length: 0 },
          host: 'box.test',
          request_id: '',
          signal: AbortSignal.timeout(60_000),
          turn: async () => undefined,
          remember: async () => undefined,
        })
    await expect(ask('GET')).rejects.toMatchObject({ type: 'forbidden', code: 'key_required' })
    await expect(ask('POST')).resolves.toMatchObject({ transaction: { key_id: null, allowed: true } })
    expect((await box.call('GET', `${path}/transactions`)).body.data).toHaveLength(1)
  })
})

describe('repeating a reveal with its Idempotency-Key', () => {
  test.each(['POST', 'GET'])('%s hands out the card as it is, charges nothing, and is seen', async (method) => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 1000 })
    const headers = { 'Idempotency-Key': 'once' }
    const ask = () =>
      method === 'GET'
        ? box.call('GET', `${path}/reveal?amount_cents=600`, undefined, { headers })
        : box.call('POST', `${path}/reveal`, { amount_cents: 600 }, { headers })
    const first = await ask()
    await box.restart()
    const again = await ask()
    expect([first.status, again.status]).toEqual([200, 200])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.body).toEqual(first.body)
    await box.call('POST', `${path}/transactions`, { type: 'report', amount_cents: 50 })
    const later = await ask()
    expect(later.body['card'].spent_cents).toBe(650)
    expect(later.body['transaction']).toEqual(first.body['transaction'])
    const { body } = await box.call('GET', `${path}/transactions?type=reveal`)
    expect(body.data.map(({ amount_cents, reason, reveal_id }) => [amount_cents, reason, reveal_id])).toEqual([
      [null, 'repeated', first.body['transaction'].id],
      [null, 'repeated', first.body['transaction'].id],
      [600, null, null],
    ])
    await box.call('POST', `${path}/freeze`)
    expect((await ask()).body.error).toMatchObject({ status: 403, code: 'card_frozen' })
    await box.call('POST', `${path}/cancel`)
    expect((await ask()).body.error).toMatchObject({ status: 403, code: 'card_cancelled' })
  })

  test('a refusal is repeated as it was', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 100 })
    const ask = () => box.call('POST', `${path}/reveal`, { amount_cents: 600 }, { headers: { 'Idempotency-Key': 'no' } })
    expect((await ask()).body.error.code).toBe('budget_exceeded')
    await box.call('PATCH', `${path}/limits`, { budget_cents: 1000 })
    const again = await ask()
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.body.error.code).toBe('budget_exceeded')
    expect((await box.call('GET', path)).body['spent_cents']).toBe(0)
  })

  test('that was cut off after it was on disk is answered all the same', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 1000 })
    const ask = (key: string, amount_cents: number) =>
      box.call('POST', `${path}/reveal`, { amount_cents }, { headers: { 'Idempotency-Key': key } })
    const first = await ask('cut off', 600)
    const refused = await ask('refused', 600)
    // as a kill between the commit and the answer leaves it
    const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
    database.exec(`UPDATE idempotency_keys SET status = 1, run_id = 'another', body = NULL, sealed = 0`)
    database.close()
    const again = await ask('cut off', 600)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.body).toEqual(first.body)
    expect((await ask('refused', 600)).body.error).toMatchObject({ code: 'budget_exceeded', message: refused.body.error.message })
    expect((await box.call('GET', path)).body['spent_cents']).toBe(600)
  })

  test('leaves no copy of the answer behind', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world)
    await box.call('POST', `${path}/reveal`, {}, { headers: { 'Idempotency-Key': 'once' } })
    const { body: list } = await box.call('GET', `${path}/transactions`)
    const kept = inside<{ body: string; memo: string }>(box, 'SELECT body, memo FROM idempotency_keys')
    // nothing, sealed: a nonce and a tag
    expect(kept.map(({ body, memo }) => [Buffer.from(body, 'base64').length, memo])).toEqual([[28, list.data[0].id]])
  })
})
