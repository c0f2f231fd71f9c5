import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { keyWith, live, token } from '../support/live.ts'
import { addedDomain } from '../support/verified-domain.ts'

const mail = (subject: string): string => message({ Subject: subject }, 'Hello\n')

/** The types of all events, page by page. */
async function walk(box: Appliance, query: string, key = box.key): Promise<string[]> {
  const types: string[] = []
  let cursor = ''
  do {
    const { status, body } = await box.call('GET', `/v1/events?${query}${cursor}`, undefined, { key })
    expect([status, body.error]).toEqual([200, undefined])
    types.push(...body.data.map(({ type }) => type as string))
    expect(body['next_cursor'] === null).toBe(!body['has_more'])
    cursor = body['has_more'] ? `&cursor=${body['next_cursor']}` : ''
  } while (cursor !== '')
  return types
}

/** Resolves once so many calls wait. */
async function waits(box: Appliance, count: number): Promise<void> {
  while (!(await box.app.metrics.text()).includes(`pillarbox_waiting_calls ${count}\n`)) await sleep(10)
}

test('the feed has the events of all identities and of none, newest first, and with since oldest first from there', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  await deliver(box.smtp, { to: bob.email, raw: mail('For Bob') })
  await addedDomain(box, 'club.test')
  await deliver(box.smtp, { to: ada.email, raw: mail('For Ada') })
  const happened = ['identity.created', 'identity.created', 'email.received', 'domain.verified', 'email.received']
  expect(await walk(box, '')).toEqual(happened.toReversed())
  expect(await walk(box, 'limit=2')).toEqual(happened.toReversed())
  expect(await walk(box, 'since=2001-01-01')).toEqual(happened)
  expect(await walk(box, 'since=2001-01-01&limit=2')).toEqual(happened)
  expect(await walk(box, 'types=domain.verified,email.received')).toEqual(['email.received', 'domain.verified', 'email.received'])
  expect(await walk(box, `identity_id=${ada.id}`)).toEqual(['email.received', 'identity.created'])
  expect(await walk(box, `identity_id=${ada.id}&since=2001-01-01&limit=1`)).toEqual(['identity.created', 'email.received'])
  const { body } = await box.call('GET', '/v1/events?types=email.received')
  expect(body.data).toMatchObject([
    { event: 'email.received', identity_id: ada.id, data: { subject: 'For Ada' } },
    { event: 'email.received', identity_id: bob.id, data: { subject: 'For Bob' } },
  ])
  const { body: own } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.received`)
  expect(own.data).toEqual([body.data[0]])
})

test('messages of a deleted identity are out of reach in the feed too, from that moment on', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  for (const { email } of [ada, bob]) await deliver(box.smtp, { to: email, raw: mail('Hello') })
  const { body: before } = await box.call('GET', '/v1/events?types=email.received')
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  const [ofBob, ofAda] = before.data
  const { body: after } = await box.call('GET', '/v1/events?types=email.received')
  expect(after.data).toEqual([ofBob, { ...ofAda, data: { id: ofAda.data.id, deleted: true } }])
  const { body: last } = await box.call('GET', '/v1/events?types=identity.deleted')
  expect(last.data).toMatchObject([{ data: { id: ada.id, name: 'Ada', status: 'deleted' } }])
})

test('the since of an answer gives each later event once, whatever there was before', async () => {
  const box = await appliance()
  const { body: nothing } = await box.call('GET', '/v1/events')
  expect(nothing).toMatchObject({ data: [], has_more: false })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const told: string[] = []
  let since = nothing['since'] as string
  for (let round = 0; round < 5; round += 1) {
    const { body } = await box.call('GET', `/v1/events?since=${encodeURIComponent(since)}&types=email.received`)
    told.push(...body.data.map(({ data }) => data.subject as string))
    since = body['since']
    await deliver(box.smtp, { to: ada.email, raw: mail(`Number ${round}`) })
    // what the filter leaves out moves it on too
    await box.call('PATCH', `/v1/identities/${ada.id}`, { metadata: { round } })
  }
  expect(told).toEqual(['Number 0', 'Number 1', 'Number 2', 'Number 3'])
  const { body: first } = await box.call('GET', '/v1/events?limit=1')
  const { body: second } = await box.call('GET', `/v1/events?limit=1&cursor=${first['next_cursor']}`)
  expect([first['since'], second['since']]).toEqual([first.data[0].id, null])
  expect((await box.call('GET', `/v1/events?since=${first['since']}`)).body.data).toEqual([])
  // a time that is still to come stays what it is
  expect((await box.call('GET', '/v1/events?since=2999-01-01')).body).toMatchObject({
    data: [],
    since: '2999-01-01T00:00:00.000Z',
  })
})

test('a call with wait is answered by the next event, and without one after its seconds', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const next = box.call('GET', '/v1/events?wait=120&types=email.received')
  const ofBob = box.call('GET', `/v1/events?wait=120&identity_id=${bob.id}`)
  await waits(box, 2)
  await box.call('PATCH', `/v1/identities/${ada.id}`, { metadata: { a: 1 } })
  await deliver(box.smtp, { to: ada.email, raw: mail('For Ada') })
  const { body } = await next
  expect(body).toMatchObject({ data: [{ type: 'email.received', data: { subject: 'For Ada' } }], has_more: false })
  expect(body['since']).toBe(body.data[0].id)
  await deliver(box.smtp, { to: bob.email, raw: mail('For Bob') })
  expect((await ofBob).body.data).toMatchObject([{ identity_id: bob.id, data: { subject: 'For Bob' } }])
  // what is there already is answered at once, and nothing is waited for twice
  const { body: at } = await box.call('GET', `/v1/events?wait=120&since=${body['since']}`)
  expect(at.data).toMatchObject([{ data: { subject: 'For Bob' } }])
  expect((await box.call('GET', `/v1/events?wait=1&since=${at['since']}`)).body).toMatchObject({
    data: [],
    has_more: false,
    since: at['since'],
  })
})

test('a key sees in the feed what it is sent by a WebSocket', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  await deliver(box.smtp, { to: [ada.email, bob.email], raw: mail('For both') })
  await box.call('POST', `/v1/identities/${ada.id}/cards`, card())
  await addedDomain(box, 'club.test')
  const sent = async (key: string): Promise<string[]> => {
    const made = await token(box, {}, key)
    const socket = await live(`${made.url}?token=${made.token}`)
    socket.say({ type: 'subscribe', channel: 'agent_events', since: '2001-01-01T00:00:00Z' })
    await socket.until('subscribed')
    const frames = await socket.until('event', (await walk(box, '', key)).length)
    return frames.map(({ event }) => event.type as string)
  }
  for (const input of [
    { scopes: ['messages:read'] },
    { scopes: ['emails:read', 'identities:read'] },
    { scopes: ['emails:read', 'cards:read'] },
    { scopes: ['messages:read', 'identities:read', 'cards:read', 'account:read'] },
    { scopes: ['messages:read', 'identities:read'], identity_id: bob.id },
  ]) {
    const { key } = await keyWith(box, input)
    expect([input, await walk(box, 'since=2001-01-01', key)]).toEqual([input, await sent(key)])
  }
  const { key: bound } = await keyWith(box, { scopes: ['messages:read', 'identities:read'], identity_id: bob.id })
  expect(await walk(box, '', bound)).toEqual(['email.received', 'identity.created'])
  expect((await box.call('GET', `/v1/events?identity_id=${ada.id}`, undefined, { key: bound })).status).toBe(404)
  const { key: cards } = await keyWith(box, { scopes: ['cards:read'] })
  expect(await walk(box, '', cards)).toEqual(['card.created'])
  expect(await walk(box, 'types=email.received', cards)).toEqual([])
  const { key: none } = await keyWith(box, { scopes: ['account:read'] })
  expect((await box.call('GET', '/v1/events', undefined, { key: none })).status).toBe(403)
})

test('a call that waits ends with its key, and with its identity', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const made = await keyWith(box, { scopes: ['identities:read'] })
  const revoked = box.call('GET', '/v1/events?wait=120', undefined, { key: made.key })
  const gone = box.call('GET', `/v1/events?wait=120&types=email.received&identity_id=${ada.id}`)
  await waits(box, 2)
  await box.call('DELETE', `/v1/api-keys/${made.id}`)
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  expect(await revoked).toMatchObject({ status: 401, body: { error: { code: 'invalid_key' } } })
  expect((await gone).status).toBe(404)
})

test('a page looks through a bounded part of the log of all accounts, and the next goes on from there', async () => {
  const box = await appliance()
  const { body: first } = await box.call('POST', '/v1/identities', { name: 'First' })
  // another account has filled the log
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  database.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 210000)
    INSERT INTO events (id, type, account_id, identity_id, created_at, data)
    SELECT 'evt_' || printf('%026d', i), 'identity.updated', 'acct_00000000000000000000000000', NULL, '2026-11-20T10:00:00.000Z', '{}' FROM n`)
  database.close()
  const { body: last } = await box.call('POST', '/v1/identities', { name: 'Last' })
  for (const query of ['', 'since=2001-01-01']) {
    const pages: string[][] = []
    let cursor = ''
    do {
      const { body } = await box.call('GET', `/v1/events?${query}${cursor}`)
      pages.push(body.data.map(({ identity_id }) => identity_id as string))
      cursor = body['has_more'] ? `&cursor=${body['next_cursor']}` : ''
    } while (cursor !== '')
    const found = [last['id'], first['id']]
    expect([query, pages.flat()]).toEqual([query, query === '' ? found : found.toReversed()])
    expect(pages.length).toBeGreaterThan(2)
  }
})

test('a wrong name, since, cursor or wait is told', async () => {
  const box = await appliance()
  await box.call('POST', '/v1/identities', {})
  const { body } = await box.call('GET', '/v1/events')
  for (const [query, error] of [
    [
      'types=email.recieved',
      { param: 'types', code: 'unknown_event', message: expect.stringContaining('Did you mean email.received?') },
    ],
    ['types=email.received,', { param: 'types', code: 'unknown_event' }],
    ['since=yesterday', { param: 'since' }],
    ['since=evt_01jd3v8m2ef1pbx9mz5k7q4w6a', { param: 'since', code: 'since_expired' }],
    ['cursor=nonsense', { param: 'cursor', code: 'bad_cursor' }],
    ['wait=121', { param: 'wait' }],
    ['limit=201', { param: 'limit' }],
    ['offset=1', { param: 'offset' }],
  ] as const) {
    expect([query, await box.call('GET', `/v1/events?${query}`)]).toMatchObject([query, { status: 400, body: { error } }])
  }
  expect(body.data).toHaveLength(1)
})
