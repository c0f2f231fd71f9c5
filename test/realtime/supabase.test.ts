import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { identity, token } from '../support/live.ts'
import { join, raw } from '../support/phoenix.ts'

test('version 2.0.0, frame by frame', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const made = await token(box)
  const client = await raw(box, 'apikey=anon&vsn=2.0.0')
  const asked = { event: 'INSERT', schema: 'public', table: 'email_messages', filter: `identity_id=eq.${ada.id}` }
  client.say(['1', '1', 'realtime:x', 'phx_join', join([asked], made.token)])
  const [reply, system] = await client.next(2)
  const { id } = reply[4].response.postgres_changes[0]
  expect(Number.isSafeInteger(id)).toBe(true)
  expect(reply).toEqual([
    '1',
    '1',
    'realtime:x',
    'phx_reply',
    { status: 'ok', response: { postgres_changes: [{ ...asked, id }] } },
  ])
  const subscribed = { extension: 'postgres_changes', status: 'ok', message: 'Subscribed to PostgreSQL', channel: 'x' }
  expect(system).toEqual(['1', null, 'realtime:x', 'system', subscribed])
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Hi' }, 'x\n') })
  const [event] = await client.next(1)
  expect(event.slice(0, 4)).toEqual([null, null, 'realtime:x', 'postgres_changes'])
  expect(event[4].ids).toEqual([id])
  expect(event[4].data).toMatchObject({ schema: 'public', table: 'email_messages', type: 'INSERT', errors: null, columns: [] })
  expect(event[4].data.commit_timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(event[4].data.record).toMatchObject({ identity_id: ada.id, subject: 'Hi', read: false })
  client.say([null, '7', 'phoenix', 'heartbeat', {}])
  expect(await client.next(1)).toEqual([[null, '7', 'phoenix', 'phx_reply', { status: 'ok', response: {} }]])
  client.say(['1', '8', 'realtime:x', 'phx_leave', {}])
  expect(await client.next(2)).toEqual([
    ['1', '8', 'realtime:x', 'phx_reply', { status: 'ok', response: {} }],
    ['1', '1', 'realtime:x', 'phx_close', {}],
  ])
})

test('version 1.0.0 is spoken when none is named, and without join_ref', async () => {
  const box = await appliance()
  const { id } = await identity(box, 'Ada')
  const made = await token(box)
  const client = await raw(box, `apikey=${made.token}`)
  client.say({
    topic: 'realtime:x',
    event: 'phx_join',
    payload: join([{ event: '*', table: 'agent_events' }, { event: 'insert' }]),
    ref: '1',
  })
  const [reply, system] = await client.next(2)
  expect(reply).toMatchObject({ topic: 'realtime:x', event: 'phx_reply', ref: '1', payload: { status: 'ok' } })
  const bindings = reply.payload.response.postgres_changes
  expect(bindings.map((binding: object) => ({ ...binding, id: 0 }))).toEqual([
    { event: '*', table: 'agent_events', id: 0 },
    { event: 'insert', id: 0 },
  ])
  expect(system).toMatchObject({ event: 'system', ref: null })
  await box.call('PATCH', `/v1/identities/${id}`, { name: 'Ada L' })
  const [event] = await client.next(1)
  expect(event).toMatchObject({ topic: 'realtime:x', event: 'postgres_changes', ref: null })
  expect(event.payload.ids).toEqual(bindings.map((binding: { id: number }) => binding.id))
  expect(event.payload.data.record).toMatchObject({
    type: 'identity.updated',
    event: 'identity.updated',
    identity_id: id,
    data: { name: 'Ada L' },
  })
  client.say({ topic: 'phoenix', event: 'heartbeat', payload: {}, ref: null, join_ref: null })
  expect(await client.next(1)).toEqual([
    { topic: 'phoenix', event: 'phx_reply', payload: { status: 'ok', response: {} }, ref: null },
  ])
})

test('long mails arrive whole at every socket that reads, in both versions, whatever the others do', async () => {
  const box = await appliance({ PILLARBOX_REALTIME__MAX_SOCKETS_PER_KEY: '100' })
  const ada = await identity(box, 'Ada')
  const made = await token(box)
  const body = `${'漢'.repeat(200)}\n`.repeat(400)
  const sockets = await Promise.all(
    Array.from({ length: 60 }, (_, index) => raw(box, `apikey=${made.token}&vsn=${index % 2 === 0 ? '1.0.0' : '2.0.0'}`)),
  )
  for (const [index, socket] of sockets.entries()) {
    const payload = join([{ event: 'INSERT', schema: 'public', table: 'email_messages' }])
    const frame = { topic: 'realtime:a', event: 'phx_join', payload, ref: '1', join_ref: '1' }
    socket.say(index % 2 === 0 ? frame : ['1', '1', 'realtime:a', 'phx_join', payload])
    await socket.next(2)
    if (index % 3 === 0) socket.webSocket.pause()
  }
  for (const Subject of ['One', 'Two', 'Three']) await deliver(box.smtp, { to: ada.email, raw: message({ Subject }, body) })
  for (const [index, socket] of sockets.entries()) {
    if (index % 3 === 0) continue
    const heard = await socket.next(3)
    const rows = heard.map((frame) => (index % 2 === 0 ? frame.payload : frame[4]).data.record)
    expect(rows.map(({ subject }) => subject)).toEqual(['One', 'Two', 'Three'])
    for (const row of rows) expect(row.text.length).toBeGreaterThan(80_000)
  }
})

test('a join without a good token is refused with a reason, and may be tried again', async () => {
  const box = await appliance()
  const made = await token(box)
  const client = await raw(box, 'apikey=anon&vsn=2.0.0')
  client.say(['1', '1', 'realtime:x', 'phx_join', join([])])
  const [refused] = await client.next(1)
  expect(refused[4]).toEqual({ status: 'error', response: { reason: expect.stringMatching(/^InvalidJWTToken: /) } })
  const wrong: [object, RegExp][] = [
    [{ table: 'emails' }, /no table emails/],
    [{ schema: 'private', table: 'agent_events' }, /schema is public/],
    [{ table: 'agent_events', filter: 'identity=eq.x' }, /no column identity/],
    [{ table: 'agent_events', filter: 'id=about.x' }, /no operator about/],
  ]
  for (const [binding, reason] of wrong) {
    client.say(['2', '2', 'realtime:x', 'phx_join', join([binding], made.token)])
    const [answer] = await client.next(1)
    expect(answer[4]).toEqual({ status: 'error', response: { reason: expect.stringMatching(reason) } })
  }
  client.say(['3', '3', 'phone:x', 'phx_join', join([], made.token)])
  expect((await client.next(1))[0][4]).toEqual({ status: 'error', response: { reason: 'unmatched topic' } })
  client.say(['4', '4', 'realtime:x', 'phx_join', join([], made.token)])
  expect((await client.next(1))[0][4]).toEqual({ status: 'ok', response: { postgres_changes: [] } })
})

test('rows outside the token are never sent, whatever the filter', async () => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const made = await token(box, { identity_id: ada.id, channels: ['email_messages'] })
  const client = await raw(box, `apikey=${made.token}&vsn=2.0.0`)
  const bindings = [
    { event: '*', schema: 'public', table: 'email_messages', filter: `identity_id=eq.${bob.id}` },
    { event: '*', schema: 'public', table: 'email_messages', filter: `identity_id=neq.${ada.id}` },
    { event: '*', schema: 'public', table: 'email_messages' },
    { event: '*', schema: 'public' },
  ]
  client.say(['1', '1', 'realtime:x', 'phx_join', join(bindings)])
  const [reply] = await client.next(2)
  const ids = reply[4].response.postgres_changes.map((binding: { id: number }) => binding.id)
  await deliver(box.smtp, { to: bob.email, raw: message({ Subject: 'For Bob' }, 'x\n') })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'For Ada' }, 'x\n') })
  const [event] = await client.next(1)
  expect(event[4].data.record.subject).toBe('For Ada')
  expect(event[4].ids).toEqual(ids.slice(2))
})

test('joining a topic again closes it first; a fresh token is taken in silence, a bad one ends the channel', async () => {
  const box = await appliance()
  const made = await token(box)
  const client = await raw(box, `apikey=${made.token}&vsn=2.0.0`)
  client.say(['1', '1', 'realtime:x', 'phx_join', join([])])
  await client.next(1)
  client.say(['2', '2', 'realtime:x', 'phx_join', join([])])
  expect((await client.next(2)).map((frame) => [frame[0], frame[3]])).toEqual([
    ['1', 'phx_close'],
    ['2', 'phx_reply'],
  ])
  client.say(['2', '3', 'realtime:x', 'access_token', { access_token: (await token(box)).token }])
  client.say(['2', '4', 'realtime:x', 'access_token', { access_token: null }])
  client.say([null, '5', 'phoenix', 'heartbeat', {}])
  expect((await client.next(1))[0].slice(1, 4)).toEqual(['5', 'phoenix', 'phx_reply'])
  client.say(['2', '6', 'realtime:x', 'access_token', { access_token: 'rtt_bad' }])
  const [system, close] = await client.next(2)
  expect(system[4]).toMatchObject({ extension: 'system', status: 'error', channel: 'x' })
  expect(close).toEqual(['2', '2', 'realtime:x', 'phx_close', {}])
})

const wide = `["1","1","realtime:x","phx_join",{"x":[${'{},'.repeat(5000)}{}]}]`
const deep = `["1","1","realtime:x","phx_join",{"x":${'['.repeat(40)}${']'.repeat(40)}}]`

const bad = ['hello', '{}', '[1]', '["1","1","realtime:x"]', '["1","1","realtime:x","phx_join","text"]']

test.each([...bad.map((frame) => [frame, frame]), ['of forty levels', deep], ['of 5,000 values', wide]])(
  'the frame %s ends the socket with 4400',
  async (_, frame) => {
    const box = await appliance()
    const client = await raw(box, 'apikey=anon&vsn=2.0.0')
    client.say(frame)
    expect((await client.next(1))[0][4]).toMatchObject({ extension: 'system', status: 'error' })
    expect(await client.closed).toBe(4400)
  },
)

test('what a join asks is echoed as it was, and what is too deep to be echoed does not fail on our side', async () => {
  const box = await appliance()
  const made = await token(box)
  const client = await raw(box, `apikey=${made.token}&vsn=2.0.0`)
  const asked = { event: '*', table: 'agent_events', select: ['id', 'type'], extra: { deep: [[1]] } }
  client.say(['1', '1', 'realtime:x', 'phx_join', join([asked])])
  const [reply] = await client.next(2)
  expect(reply[4].response.postgres_changes).toEqual([{ ...asked, id: expect.any(Number) }])
  const binding = `{"event":"*","table":"agent_events","x":${'['.repeat(7000)}${']'.repeat(7000)}}`
  client.say(`["2","2","realtime:y","phx_join",{"config":{"postgres_changes":[${binding}]}}]`)
  expect(await client.closed).toBe(4400)
  expect(box.logged.filter((line) => line.includes('"level":"error"'))).toEqual([])
})

test('the patterns of a socket are bounded together, whichever join they came with', async () => {
  const box = await appliance()
  const made = await token(box)
  const client = await raw(box, `apikey=${made.token}&vsn=2.0.0`)
  const asked = { event: '*', table: 'email_messages', filter: 'subject=match.[ab]{200}' }
  const reasons: unknown[] = []
  for (const topic of ['a', 'b', 'c']) {
    client.say(['1', '1', `realtime:${topic}`, 'phx_join', join([asked], made.token)])
    const [reply] = await client.next(topic === 'c' ? 1 : 2)
    reasons.push(reply[4].response.reason)
  }
  expect(reasons).toEqual([undefined, undefined, expect.stringMatching(/^ChannelRateLimitReached: .*500 steps/)])
  client.say(['1', '2', 'realtime:a', 'phx_leave', {}])
  await client.next(2)
  client.say(['1', '3', 'realtime:c', 'phx_join', join([asked], made.token)])
  expect((await client.next(1))[0][4].status).toBe('ok')
})
