import { once } from 'node:events'
import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { movable } from '../support/held-clock.ts'
import { connect, identity, live, token } from '../support/live.ts'

const mail = (subject: string, body = 'Hello\n'): string => message({ Subject: subject }, body)

test('mail that arrives is told on the channels of its identity and of the account', async () => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const one = await connect(box)
  one.say({ type: 'subscribe', channel: 'email_messages', identity_id: ada.id })
  const [subscribed] = await one.until('subscribed')
  expect(subscribed).toMatchObject({ channel: 'email_messages', identity_id: ada.id, since: expect.stringMatching(/^evt_/) })
  const all = await connect(box)
  all.say({ type: 'subscribe', channel: 'agent_events' })
  await all.until('subscribed')
  await deliver(box.smtp, { to: bob.email, raw: mail('For Bob') })
  await deliver(box.smtp, { to: ada.email, raw: mail('For Ada', 'Your code is 493817\n') })
  const [{ event, channel }] = await one.until('event')
  expect(channel).toBe('email_messages')
  expect(event).toMatchObject({
    type: 'email.received',
    event: 'email.received',
    identity_id: ada.id,
    data: { subject: 'For Ada' },
  })
  const heard = await all.until('event', 2)
  expect(heard.map((frame) => frame.event.data.subject)).toEqual(['For Bob', 'For Ada'])
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.received`)
  expect(event).toEqual(body.data[0])
})

test('whoever reads hears of one long mail to many identities, of each in order', async () => {
  const box = await appliance()
  const identities = []
  for (let index = 0; index < 20; index += 1) identities.push(await identity(box))
  const socket = await connect(box)
  socket.say({ type: 'subscribe', channel: 'agent_events' })
  await socket.until('subscribed')
  const raw = mail('To all of you', `${'Words, words, words.'.repeat(10)}\n`.repeat(2000))
  await deliver(box.smtp, { to: identities.map(({ email }) => email), raw })
  const heard = await socket.until('event', 20)
  expect(heard.map(({ event }) => event.identity_id)).toEqual(identities.map(({ id }) => id))
})

test('a subscriber that comes back with since gets what it missed, once and in order, and then what happens', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const first = await connect(box, { identity_id: ada.id })
  first.say({ type: 'subscribe', channel: 'email_messages' })
  const [{ since }] = await first.until('subscribed')
  first.webSocket.terminate()
  for (let index = 0; index < 40; index += 1) await deliver(box.smtp, { to: ada.email, raw: mail(`Number ${index}`) })
  const second = await connect(box, { identity_id: ada.id })
  const sending = (async () => {
    for (let index = 40; index < 80; index += 1) await deliver(box.smtp, { to: ada.email, raw: mail(`Number ${index}`) })
  })()
  second.say({ type: 'subscribe', channel: 'email_messages', since })
  const heard = await second.until('event', 80)
  await sending
  expect(heard.map(({ event }) => event.data.subject)).toEqual(Array.from({ length: 80 }, (_, index) => `Number ${index}`))
  const third = await connect(box, { identity_id: ada.id })
  third.say({ type: 'subscribe', channel: 'email_messages', since: heard[77].event.id })
  expect((await third.until('event', 2)).map(({ event }) => event.data.subject)).toEqual(['Number 78', 'Number 79'])
})

test('who subscribes where nothing ever happened, or not for long, is told a since that misses nothing', async () => {
  const box = await appliance()
  const first = await connect(box)
  first.say({ type: 'subscribe', channel: 'agent_events' })
  const [{ since }] = await first.until('subscribed')
  first.webSocket.terminate()
  const ada = await identity(box, 'Ada')
  const second = await connect(box)
  second.say({ type: 'subscribe', channel: 'agent_events', since })
  expect((await second.until('event'))[0].event).toMatchObject({ type: 'identity.created', identity_id: ada.id })

  const database = openStore(join(box.directory, 'data', 'pillarbox.db'))
  database.exec(`WITH RECURSIVE many (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM many WHERE number < 10001)
    INSERT INTO events (id, type, account_id, identity_id, created_at, data)
    SELECT 'evt_' || number, 'identity.updated', 'acct_other', NULL, '${new Date().toISOString()}', '{}' FROM many`)
  database.close()
  second.say({ type: 'subscribe', channel: 'agent_events', identity_id: ada.id })
  const [, quiet] = await second.until('subscribed', 2)
  second.webSocket.terminate()
  await box.call('PATCH', `/v1/identities/${ada.id}`, { name: 'Ada L' })
  const third = await connect(box)
  third.say({ type: 'subscribe', channel: 'agent_events', identity_id: ada.id, since: quiet.since })
  expect((await third.until('event')).map(({ event }) => event.type)).toEqual(['identity.updated'])
})

test('since takes a time, for one identity and for the account', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  await deliver(box.smtp, { to: ada.email, raw: mail('Before') })
  await new Promise((resolve) => setTimeout(resolve, 5))
  const since = new Date().toISOString()
  await deliver(box.smtp, { to: ada.email, raw: mail('After') })
  for (const identity_id of [ada.id, undefined]) {
    const socket = await connect(box)
    socket.say({ type: 'subscribe', channel: 'email_messages', identity_id, since })
    const [{ event }] = await socket.until('event')
    expect(event.data.subject).toBe('After')
    const beginning = await connect(box)
    beginning.say({ type: 'subscribe', channel: 'agent_events', identity_id, since: '2001-01-01T00:00:00Z' })
    const all = await beginning.until('event', 3)
    expect(all.map((frame) => frame.event.type)).toEqual(['identity.created', 'email.received', 'email.received'])
  }
})

test('a socket pings, unsubscribes, and takes the token as a subprotocol', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const made = await token(box)
  const socket = await live(made.url, ['pillarbox.v1', made.token])
  expect(socket.webSocket.protocol).toBe('pillarbox.v1')
  socket.say({ type: 'ping' })
  await socket.until('pong')
  for (const channel of ['agent_events', 'email_messages']) socket.say({ type: 'subscribe', channel })
  await socket.until('subscribed', 2)
  socket.say({ type: 'unsubscribe', channel: 'email_messages' })
  await socket.until('unsubscribed')
  await deliver(box.smtp, { to: ada.email, raw: mail('Once') })
  await socket.until('event')
  socket.say({ type: 'ping' })
  await socket.until('pong', 2)
  expect(socket.frames.filter((frame) => frame.type === 'event').map((frame) => frame.channel)).toEqual(['agent_events'])
})

test('what was asked wrongly is told with a code and a param, and the socket stays', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const socket = await connect(box)
  const wrong: [object, object][] = [
    [{ channel: 'everything' }, { code: 'unknown_channel', param: 'channel' }],
    [{ channel: '*' }, { code: 'unknown_channel', param: 'channel' }],
    [
      { channel: 'agent_events', identity_id: '*' },
      { code: 'bad_id', param: 'identity_id' },
    ],
    [
      { channel: 'agent_events', identity_id: 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a' },
      { code: 'not_found', param: 'identity_id' },
    ],
    [{ channel: 'agent_events', since: 'yesterday' }, { param: 'since' }],
    [
      { channel: 'agent_events', since: 'evt_01jd3v8m2ef1pbx9mz5k7q4w6a' },
      { code: 'since_expired', param: 'since' },
    ],
  ]
  for (const [index, [frame, expected]] of wrong.entries()) {
    socket.say({ type: 'subscribe', ...frame })
    expect((await socket.until('error', index + 1))[index]).toMatchObject({ ...expected, message: expect.any(String) })
  }
  socket.say({ type: 'subscribe', channel: 'agent_events', identity_id: ada.id })
  await socket.until('subscribed')
})

test.each([
  ['text', 'hello'],
  ['an array', '[]'],
  ['null', 'null'],
  ['an unknown type', '{"type":"dance"}'],
  ['a missing channel', '{"type":"subscribe"}'],
  ['an unknown field', '{"type":"subscribe","channel":"agent_events","identiy_id":"x"}'],
  ['a number for a text', '{"type":"subscribe","channel":7}'],
])('a frame that is %s is told, with an example of a right one, and the socket stays open', async (_, frame) => {
  const box = await appliance()
  const socket = await connect(box)
  socket.say(frame)
  expect((await socket.until('error'))[0]).toMatchObject({
    code: 'malformed_frame',
    message: expect.stringContaining('{"type":"subscribe","channel":"agent_events"}'),
  })
  socket.say({ type: 'subscribe', channel: 'agent_events' })
  await socket.until('subscribed')
})

test('three wrong frames in a minute are forgiven, and the fourth ends the socket with its code', async () => {
  const clock = movable()
  const box = await appliance({}, clock)
  const socket = await connect(box, { channels: ['email_messages'] })
  const wrong = ['hello', '{"type":"dance"}', { type: 'subscribe', channel: 'agent_events' }]
  for (const [index, frame] of wrong.entries()) {
    socket.say(frame)
    await socket.until('error', index + 1)
  }
  socket.say({ type: 'ping' })
  await socket.until('pong')
  clock.ahead += 61_000
  for (const [index, frame] of wrong.entries()) {
    socket.say(frame)
    await socket.until('error', wrong.length + index + 1)
  }
  socket.say({ type: 'ping' })
  await socket.until('pong', 2)
  // what is right and cannot be done is no wrong frame
  socket.say({ type: 'subscribe', channel: 'email_messages', since: 'evt_01jd3v8m2ef1pbx9mz5k7q4w6a' })
  expect((await socket.until('error', 7))[6]).toMatchObject({ code: 'since_expired' })
  socket.say('hello')
  expect((await socket.closed).code).toBe(4400)
})

test.each([
  ['too_deep', `{"type":"subscribe","channel":${'['.repeat(8000)}${']'.repeat(8000)}}`],
  ['too_many_tokens', `{"type":"subscribe","channel":[${'{},'.repeat(5000)}{}]}`],
])('a frame that is %s is refused before it is read, and ends the socket when it is not the first', async (code, frame) => {
  const box = await appliance()
  const socket = await connect(box)
  for (let count = 0; count < 4; count += 1) socket.say(frame)
  expect((await socket.until('error'))[0]).toMatchObject({ code, message: expect.stringContaining('The frame ') })
  expect((await socket.closed).code).toBe(4400)
})

test('binary, oversize, crumbled and too many frames end the socket, each with its code', async () => {
  const box = await appliance()
  const binary = await connect(box)
  for (let count = 0; count < 4; count += 1) binary.webSocket.send(Buffer.from('{"type":"ping"}'))
  expect((await binary.closed).code).toBe(4400)
  const large = await connect(box)
  large.say(JSON.stringify({ type: 'refresh', token: 'x'.repeat(20_000) }))
  expect((await large.closed).code).toBe(1009)
  const crumbled = await connect(box)
  for (let index = 0; index < 300; index += 1) crumbled.webSocket.send(' ', { fin: false })
  expect((await crumbled.closed).code).toBe(1008)
  const hurried = await connect(box)
  for (let index = 0; index < 300; index += 1) hurried.say({ type: 'ping' })
  expect((await hurried.closed).code).toBe(4429)
})

test('pings count as frames, and use up no more than frames do', async () => {
  const clock = { ahead: 0, now: () => Date.now() + clock.ahead }
  const box = await appliance({}, clock)
  const patient = await connect(box)
  for (let index = 0; index < 190; index += 1) patient.say({ type: 'ping' })
  await patient.until('pong', 190)
  clock.ahead += 5000
  patient.webSocket.ping()
  await once(patient.webSocket, 'pong')
  for (let index = 0; index < 90; index += 1) patient.say({ type: 'ping' })
  await patient.until('pong', 280)
  const hurried = await connect(box)
  for (let index = 0; index < 300; index += 1) {
    hurried.webSocket.pong()
    if (index % 20 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  expect((await hurried.closed).code).toBe(4429)
})

test('a stop says goodbye with 1001', async () => {
  const box = await appliance()
  const socket = await connect(box)
  await box.restart()
  expect((await socket.closed).code).toBe(1001)
})

test('a subscription with types hears of these only: of inbound messages, live and stored, also after a refresh', async () => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  await deliver(box.smtp, { to: ada.email, raw: mail('Before') })
  const socket = await connect(box)
  const types = ['email.received', 'sms.received']
  socket.say({ type: 'subscribe', channel: 'agent_events', identity_id: ada.id, types, since: '2001-01-01T00:00:00Z' })
  await socket.until('subscribed')
  await box.call('POST', `/v1/identities/${ada.id}/emails`, { to: bob.email, subject: 'Sent' })
  socket.say({ type: 'refresh', token: (await token(box)).token })
  await socket.until('refreshed')
  await box.call('PATCH', `/v1/identities/${ada.id}`, { metadata: { a: 1 } })
  await box.settled()
  await deliver(box.smtp, { to: ada.email, raw: mail('After') })
  await socket.until('event', 2)
  const heard = socket.frames.filter(({ type }) => type === 'event').map(({ event }) => [event.type, event.data.subject])
  expect(heard).toEqual([
    ['email.received', 'Before'],
    ['email.received', 'After'],
  ])
  for (const [index, wrong] of [
    { channel: 'agent_events', types: ['email.recieved'] },
    { channel: 'sms_messages', types: ['email.received'] },
  ].entries()) {
    socket.say({ type: 'subscribe', ...wrong })
    expect((await socket.until('error', index + 1))[index]).toMatchObject({ code: 'unknown_event', param: 'types' })
  }
})

test('the frames that come with a token can be sent as they are, and are answered', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const inputs = [{}, { channels: ['sms_messages'] }, { identity_id: ada.id, channels: ['email_messages', 'sms_messages'] }]
  const examples = ['agent_events', 'sms_messages', 'email_messages']
  for (const [index, input] of inputs.entries()) {
    const { body: made } = await box.call('POST', '/v1/realtime/token', input)
    const { frames } = made
    const place = { channel: examples[index], ...('identity_id' in input ? { identity_id: ada.id } : {}) }
    expect(frames).toEqual({
      subscribe: { type: 'subscribe', ...place },
      resume: { type: 'subscribe', ...place, since: 'evt_…' },
      unsubscribe: { type: 'unsubscribe', ...place },
      refresh: { type: 'refresh', token: 'rtt_…' },
      ping: { type: 'ping' },
    })
    const socket = await live(`${made['url']}?token=${made['token']}`)
    socket.say(frames.subscribe)
    const [{ since }] = await socket.until('subscribed')
    socket.say({ ...frames.resume, since })
    await socket.until('subscribed', 2)
    socket.say(frames.unsubscribe)
    await socket.until('unsubscribed')
    socket.say({ ...frames.refresh, token: made['token'] })
    await socket.until('refreshed')
    socket.say(frames.ping)
    await socket.until('pong')
    socket.webSocket.terminate()
  }
})
