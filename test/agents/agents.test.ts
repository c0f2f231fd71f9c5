import { expect, test } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'

async function identity(box: Appliance, name: string): Promise<string> {
  return (await box.call('POST', '/v1/identities', { name })).body.id
}

async function agentEvents(box: Appliance, id: string): Promise<[string, Record<string, unknown>][]> {
  const { body } = await box.call('GET', `/v1/identities/${id}/events?limit=200`)
  return body.data
    .filter((event) => event.type.startsWith('agent.'))
    .map((event): [string, Record<string, unknown>] => [event.type, event.data])
}

test('an agent is made, found, changed, and told of', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const ada = await identity(box, 'Ada Lovelace')
  const input = {
    identity_id: ada,
    description: 'Books tables.\nAnd taxis.',
    avatar_url: 'https://ada.example/face.png',
    capabilities: ['reservations', 'taxis', 'reservations'],
    links: [{ name: 'web', url: 'https://ada.example' }],
    metadata: { city: 'London', floor: 3 },
  }
  const made = await box.call('POST', '/v1/agents', input)
  expect(made.status).toBe(201)
  const { body: agent } = made
  expect(agent).toEqual({
    ...input,
    id: expect.stringMatching(/^agent_[0-9a-z]{26}$/) as string,
    handle: 'ada-lovelace',
    display_name: 'Ada Lovelace',
    capabilities: ['reservations', 'taxis'],
    did: `did:web:127.0.0.1%3A${new URL(box.url).port}:v1:agents:${agent.id}`,
    status: 'active',
    created_at: '2026-11-20T10:05:00.000Z',
    updated_at: '2026-11-20T10:05:00.000Z',
  })
  expect(made.headers.get('location')).toBe(`/v1/agents/${agent.id}`)
  expect((await box.call('GET', `/v1/agents/${agent.id}`)).body).toEqual(agent)
  for (const query of ['', '?handle=ada-lovelace', '?handle=Ada-Lovelace', `?identity_id=${ada}`]) {
    expect((await box.call('GET', `/v1/agents${query}`)).body.data).toEqual([agent])
  }
  expect((await box.call('GET', '/v1/agents?handle=nobody-else')).body.data).toEqual([])

  clock.advance(1000)
  const change = { display_name: 'Ada', description: null, links: [], metadata: { city: null, wing: 'west' } }
  const changed = await box.call('PATCH', `/v1/agents/${agent.id}`, change)
  const after = {
    ...agent,
    ...change,
    metadata: { floor: 3, wing: 'west' },
    updated_at: '2026-11-20T10:05:01.000Z',
  }
  expect([changed.status, changed.body]).toEqual([200, after])
  await box.restart()
  const did = `did:web:127.0.0.1%3A${new URL(box.url).port}:v1:agents:${agent.id}`
  expect((await box.call('GET', `/v1/agents/${agent.id}`)).body).toEqual({ ...after, did })

  expect((await box.call('DELETE', `/v1/agents/${agent.id}`)).body).toEqual({ id: agent.id, deleted: true })
  expect((await box.call('GET', `/v1/agents/${agent.id}`)).status).toBe(404)
  expect(await agentEvents(box, ada)).toEqual([
    ['agent.deleted', { id: agent.id, identity_id: ada, handle: 'ada-lovelace', did, status: 'deleted' }],
    ['agent.updated', after],
    ['agent.created', agent],
  ])
})

test('an identity has one agent; after a deletion it may have another, under another handle', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const { body: first } = await box.call('POST', '/v1/agents', { identity_id: ada })
  const second = await box.call('POST', '/v1/agents', { identity_id: ada, handle: 'other' })
  expect([second.status, second.body.error]).toMatchObject([409, { type: 'conflict', param: 'identity_id' }])
  expect((await box.call('GET', '/v1/agents?handle=other')).body.data).toEqual([])
  await box.call('DELETE', `/v1/agents/${first.id}`)
  const again = await box.call('POST', '/v1/agents', { identity_id: ada, handle: 'ada' })
  expect([again.status, again.body.error]).toMatchObject([409, { param: 'handle' }])
  const { body: other } = await box.call('POST', '/v1/agents', { identity_id: ada })
  expect([other.handle, other.id === first.id]).toEqual(['ada-2', false])
  expect((await box.call('GET', '/v1/agents?handle=ada')).body.data).toEqual([])
})

test('with the identity its agent goes, and the handle is nobody’s ever after', async () => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada, handle: 'countess' })
  await box.call('DELETE', `/v1/identities/${ada}`)
  expect((await box.call('GET', `/v1/agents/${agent.id}`)).status).toBe(404)
  expect((await box.call('GET', '/v1/agents')).body.data).toEqual([])
  const taken = await box.call('POST', '/v1/agents', { identity_id: bob, handle: 'Countess' })
  expect([taken.status, taken.body.error]).toMatchObject([409, { param: 'handle' }])
  await box.restart()
  expect((await box.call('POST', '/v1/agents', { identity_id: bob, handle: 'countess' })).status).toBe(409)
})

test('of many who want one handle at once, one has it', async () => {
  const box = await appliance()
  const ids = await Promise.all(Array.from({ length: 20 }, (_, index) => identity(box, `Racer ${index}`)))
  const answers = await Promise.all(ids.map((identity_id) => box.call('POST', '/v1/agents', { identity_id, handle: 'winner' })))
  expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
    201,
    ...Array.from({ length: 19 }, () => 409),
  ])
  expect((await box.call('GET', '/v1/agents')).body.data).toHaveLength(1)
  const losers = ids.filter((_, index) => answers[index]!.status === 409)
  const same = await Promise.all([1, 2, 3, 4].map(() => box.call('POST', '/v1/agents', { identity_id: losers[0] })))
  expect(same.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([201, 409, 409, 409])
  const made = await Promise.all(losers.slice(1).map((identity_id) => box.call('POST', '/v1/agents', { identity_id })))
  expect(made.map(({ status }) => status)).toEqual(losers.slice(1).map(() => 201))
})

test('handles made from names are plain, and told apart', async () => {
  const box = await appliance()
  const names = ['Zoë_Q. Ærø', 'zoe q aero', 'x', 'Admin', '***', `${'long name '.repeat(9)}1`, `${'long name '.repeat(9)}2`]
  const handles: string[] = []
  for (const name of names) {
    const { body } = await box.call('POST', '/v1/agents', { identity_id: await identity(box, name) })
    expect(body.handle).toMatch(/^[a-z0-9][a-z0-9-]{1,38}$/)
    handles.push(body.handle)
  }
  expect(handles.slice(0, 2)).toEqual(['zoe-q-aero', 'zoe-q-aero-2'])
  expect(handles[3]).toBe('admin-2')
  expect(handles.slice(5)).toEqual(['long-name-long-name-long-name-long-name', 'long-name-long-name-long-name-long-na-2'])
  expect(new Set(handles).size).toBe(handles.length)
})

test('a handle can be changed; the former one stays the agent’s own', async () => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada, handle: 'first' })
  const at = `/v1/agents/${agent.id}`
  expect((await box.call('PATCH', at, { handle: 'SECOND' })).body.handle).toBe('second')
  for (const handle of ['first', 'second']) {
    expect((await box.call('GET', `/v1/agents?handle=${handle}`)).body.data).toMatchObject([{ id: agent.id, handle: 'second' }])
    expect((await box.call('POST', '/v1/agents', { identity_id: bob, handle })).status).toBe(409)
  }
  expect((await box.call('PATCH', at, { handle: 'first' })).body.handle).toBe('first')
  for (let turn = 0; turn < 9; turn += 1) expect((await box.call('PATCH', at, { handle: `turn-${turn}` })).status).toBe(200)
  const many = await box.call('PATCH', at, { handle: 'one-too-many' })
  expect(many.body.error).toMatchObject({ status: 409, code: 'too_many_handles', param: 'handle' })
  expect((await box.call('PATCH', at, { handle: 'second' })).body.handle).toBe('second')
  // what was refused is not taken
  expect((await box.call('POST', '/v1/agents', { identity_id: bob, handle: 'one-too-many' })).status).toBe(201)
})

test('what strangers would misunderstand or could be harmed by is refused', async () => {
  const box = await appliance()
  const identity_id = await identity(box, 'Ada')
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: await identity(box, 'Bob') })
  const wrong: [Record<string, unknown>, string][] = [
    [{ handle: 'a' }, 'handle'],
    [{ handle: '-ab' }, 'handle'],
    [{ handle: 'a_b' }, 'handle'],
    [{ handle: 'аda' }, 'handle'],
    [{ handle: 'x'.repeat(40) }, 'handle'],
    [{ avatar_url: 'http://ada.example/a.png' }, 'avatar_url'],
    [{ avatar_url: 'http://127.0.0.1/a.png' }, 'avatar_url'],
    [{ avatar_url: 'https://user:word@ada.example' }, 'avatar_url'],
    [{ avatar_url: 'https://user@ada.example' }, 'avatar_url'],
    [{ avatar_url: 'javascript:alert(1)' }, 'avatar_url'],
    [{ avatar_url: 'https://' }, 'avatar_url'],
    [{ avatar_url: 'https://ada.example\\@evil.example' }, 'avatar_url'],
    [{ avatar_url: 'https://ada.example/a b' }, 'avatar_url'],
    [{ avatar_url: `https://ada.example/${'x'.repeat(2048)}` }, 'avatar_url'],
    [{ links: [{ name: 'web', url: 'ftp://ada.example' }] }, 'links.0.url'],
    [{ links: [{ name: '', url: 'https://ada.example' }] }, 'links.0.name'],
    [{ links: Array.from({ length: 21 }, () => ({ name: 'web', url: 'https://ada.example' })) }, 'links'],
    [{ description: 'evil \u202e live' }, 'description'],
    [{ description: 'bell \u0007' }, 'description'],
    [{ description: 'x'.repeat(2001) }, 'description'],
    [{ display_name: 'two\nlines' }, 'display_name'],
    [{ capabilities: ['two\nlines'] }, 'capabilities.0'],
    [{ metadata: { big: 'x'.repeat(16_384) } }, 'metadata'],
  ]
  for (const [fields, param] of wrong) {
    const made = await box.call('POST', '/v1/agents', { identity_id, ...fields })
    expect([fields, made.status, made.body.error]).toMatchObject([fields, 400, { type: 'invalid_request', param }])
    const changed = await box.call('PATCH', `/v1/agents/${agent.id}`, fields)
    expect([fields, changed.status, changed.body.error]).toMatchObject([fields, 400, { param }])
  }
  for (const handle of ['admin', 'API', 'well-known', 'postmaster']) {
    const made = await box.call('POST', '/v1/agents', { identity_id, handle })
    expect([handle, made.status, made.body.error]).toMatchObject([handle, 409, { param: 'handle' }])
  }
  const moved = await box.call('PATCH', `/v1/agents/${agent.id}`, { identity_id })
  expect([moved.status, moved.body.error]).toMatchObject([400, { code: 'unknown_field' }])
})

test('a suspended identity’s agent is suspended, and active with it again', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada })
  for (const status of ['suspended', 'active']) {
    await box.call('PATCH', `/v1/identities/${ada}`, { status })
    expect((await box.call('GET', `/v1/agents/${agent.id}`)).body.status).toBe(status)
  }
})

test('a key bound to an identity sees, makes and changes the agent of that identity alone', async () => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const { body: bobs } = await box.call('POST', '/v1/agents', { identity_id: bob })
  const { body: made } = await box.call('POST', '/v1/api-keys', { identity_id: ada })
  const as = { key: made.key as string }
  const { body: adas } = await box.call('POST', '/v1/agents', { identity_id: ada }, as)
  expect((await box.call('GET', '/v1/agents', undefined, as)).body.data).toEqual([adas])
  expect((await box.call('GET', `/v1/agents?handle=${bobs.handle}`, undefined, as)).body.data).toEqual([])
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    expect((await box.call(method, `/v1/agents/${bobs.id}`, method === 'PATCH' ? {} : undefined, as)).status).toBe(404)
  }
  expect((await box.call('PATCH', `/v1/agents/${adas.id}`, { description: 'Mine.' }, as)).status).toBe(200)
  await box.call('DELETE', `/v1/agents/${bobs.id}`)
  expect((await box.call('POST', '/v1/agents', { identity_id: bob }, as)).status).toBe(404)
})
