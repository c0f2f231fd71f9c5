import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { identity, token } from '../support/live.ts'
import { join, raw } from '../support/phoenix.ts'

test('a socket whose last channel was left stays for the next one, as long as the key it showed lives', async () => {
  const clock = { ahead: 0, now: () => Date.now() + clock.ahead }
  const box = await appliance({}, clock)
  const { body: key } = await box.call('POST', '/v1/api-keys', {})
  const made = await token(box, { expires_in: 3600 }, key.key)
  const client = await raw(box, 'apikey=anon&vsn=2.0.0')
  client.say(['1', '1', 'realtime:x', 'phx_join', join([], made.token)])
  await client.next(1)
  clock.ahead = 31_000
  client.say(['1', '2', 'realtime:x', 'phx_leave', {}])
  await client.next(2)
  // longer than it takes the box to look whether everybody may stay
  await new Promise((resolve) => setTimeout(resolve, 2100))
  client.say(['2', '3', 'realtime:y', 'phx_join', join([], made.token)])
  expect((await client.next(1))[0][4].status).toBe('ok')
  client.say(['2', '4', 'realtime:y', 'phx_leave', {}])
  await client.next(2)
  await box.call('DELETE', `/v1/api-keys/${key.id}`)
  expect(await client.closed).toBe(4401)
})

test('a channel hears what its fresh token opens, no more and no less; the token it has is nothing new', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const ofAda = await token(box, { identity_id: ada.id, channels: ['email_messages'], expires_in: 3600 })
  const ofBob = await token(box, { identity_id: bob.id, expires_in: 10 })
  const client = await raw(box, 'apikey=anon&vsn=2.0.0')
  client.say(['1', '1', 'realtime:x', 'phx_join', join([{ event: '*', schema: 'public' }], ofAda.token)])
  await client.next(2)
  const fresh = async (text: string): Promise<void> => {
    client.say(['1', '2', 'realtime:x', 'access_token', { access_token: text }])
    client.say([null, '3', 'phoenix', 'heartbeat', {}])
    expect((await client.next(1))[0][2]).toBe('phoenix')
  }
  const both = async (): Promise<string[]> => {
    for (const { email } of [ada, bob]) await deliver(box.smtp, { to: email, raw: message({ Subject: `To ${email}` }, 'x\n') })
    client.say([null, '4', 'phoenix', 'heartbeat', {}])
    const heard: string[] = []
    for (;;) {
      const [frame] = await client.next(1)
      if (frame[2] === 'phoenix') return heard
      heard.push(`${frame[4].data.table} ${(frame[4].data.record.data ?? frame[4].data.record).subject}`)
    }
  }
  expect(await both()).toEqual([`email_messages To ${ada.email}`])
  await fresh(ofBob.token)
  expect(await both()).toEqual([`agent_events To ${bob.email}`, `email_messages To ${bob.email}`])
  clock.advance(11_000)
  await fresh(ofBob.token)
  expect(await both()).toHaveLength(2)
  await fresh((await token(box)).token)
  expect(await both()).toHaveLength(4)
})

test('a fresh token that does not open what was asked for ends the channel, and says so', async () => {
  const box = await appliance()
  const made = await token(box)
  const less = await token(box, { channels: ['email_messages'] })
  const client = await raw(box, `apikey=${made.token}&vsn=2.0.0`)
  client.say(['1', '1', 'realtime:x', 'phx_join', join([{ event: '*', schema: 'public', table: 'agent_events' }])])
  await client.next(2)
  client.say(['1', '2', 'realtime:x', 'access_token', { access_token: less.token }])
  const [system, close] = await client.next(2)
  expect(system[4]).toMatchObject({ extension: 'system', status: 'error', message: expect.stringContaining('agent_events') })
  expect(close.slice(0, 4)).toEqual(['1', '1', 'realtime:x', 'phx_close'])
})

/** The status that a socket without a token gets from this address. */
const stranger = (box: Appliance, address: string): Promise<number> =>
  new Promise((resolve) => {
    const webSocket = new WebSocket(`${box.url.replace('http', 'ws')}/realtime/v1/websocket?apikey=anon`, {
      headers: { 'X-Forwarded-For': address },
    })
    onTestFinished(() => webSocket.terminate())
    webSocket.on('error', () => undefined)
    webSocket.once('open', () => resolve(101))
    webSocket.on('unexpected-response', (request, response) => {
      resolve(response.statusCode!)
      request.destroy()
    })
  })

test('sockets without a token never take the places of those with one', async () => {
  const box = await appliance({ PILLARBOX_REALTIME__MAX_SOCKETS: '10', PILLARBOX_HTTP__TRUSTED_PROXIES: '127.0.0.1' })
  const statuses: number[] = []
  for (let index = 1; index <= 4; index += 1) statuses.push(await stranger(box, `203.0.113.${index}`))
  expect(statuses).toEqual([101, 101, 429, 429])
  const made = await token(box)
  for (let index = 0; index < 8; index += 1) await raw(box, `apikey=${made.token}`)
})

test('owning many networks gives few more sockets without a token', async () => {
  const box = await appliance({ PILLARBOX_HTTP__TRUSTED_PROXIES: '127.0.0.1' })
  const statuses: number[] = []
  for (let index = 0; index < 81; index += 1) statuses.push(await stranger(box, `2001:db8:1:${(index % 8).toString(16)}::1`))
  expect(statuses.filter((status) => status === 101)).toHaveLength(80)
  expect(statuses.at(-1)).toBe(429)
  expect(await stranger(box, '2001:db8:2::1')).toBe(101)
})

test('who never shows a token does not stay, and an address has few of them', async () => {
  const clock = { ahead: 0, now: () => Date.now() + clock.ahead }
  const box = await appliance({}, clock)
  const strangers = []
  for (let index = 0; index < 20; index += 1) strangers.push(await raw(box, 'apikey=anon'))
  await expect(raw(box, 'apikey=anon')).rejects.toThrow('429')
  clock.ahead = 31_000
  for (const { closed } of strangers) expect(await closed).toBe(4401)
  await expect(raw(box, 'vsn=2.0.0')).rejects.toThrow('401')
  await expect(raw(box, 'apikey=anon&vsn=3.0.0')).rejects.toThrow('400')
})
