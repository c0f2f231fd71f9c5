import fc from 'fast-check'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { appliance } from '../support/appliance.ts'
import { token } from '../support/live.ts'

const word = fc.oneof(
  fc.constantFrom(
    'subscribe',
    'unsubscribe',
    'refresh',
    'ping',
    'agent_events',
    'email_messages',
    'phx_join',
    'phx_leave',
    'access_token',
  ),
  fc.constantFrom(
    'realtime:x',
    'phoenix',
    'heartbeat',
    '1',
    '__proto__',
    'constructor',
    '2026-11-20T10:00:00Z',
    'evt_',
    '\u0000',
  ),
  fc.string(),
)
const value = fc.oneof(word, fc.jsonValue({ maxDepth: 3 }), fc.constant(null))
const binding = fc.record({ event: value, schema: value, table: value, filter: value }, { requiredKeys: [] })
const payload = fc.record(
  { config: fc.record({ postgres_changes: fc.array(binding) }), access_token: value },
  { requiredKeys: [] },
)
const frame = fc.oneof(
  fc.record({ type: word, channel: value, identity_id: value, since: value, token: value }, { requiredKeys: ['type'] }),
  fc.tuple(value, value, word, word, fc.oneof(payload, value)),
  fc.record(
    { topic: word, event: word, payload: fc.oneof(payload, value), ref: value, join_ref: value },
    { requiredKeys: ['topic'] },
  ),
  fc.jsonValue(),
)
const octets = fc.oneof(
  frame.map((it) => JSON.stringify(it)),
  fc.string(),
  fc.uint8Array().map((bytes) => Buffer.from(bytes)),
)

test('no frame, however odd, brings the box down or makes it fail', async () => {
  const box = await appliance({ PILLARBOX_REALTIME__MAX_SOCKETS_PER_KEY: '1000' })
  const made = await token(box, { expires_in: 3600 })
  const addresses = [
    `${made.url}?token=${made.token}`,
    `${made.url.replace('/v1/realtime', '/realtime/v1/websocket')}?apikey=${made.token}&vsn=2.0.0`,
    `${made.url.replace('/v1/realtime', '/realtime/v1/websocket')}?apikey=${made.token}`,
  ]
  const sessions = fc.sample(fc.tuple(fc.constantFrom(...addresses), fc.array(octets, { minLength: 1, maxLength: 12 })), {
    seed: 20261120,
    numRuns: 400,
  })
  for (const [address, frames] of sessions) {
    const webSocket = new WebSocket(address)
    webSocket.on('error', () => undefined)
    await new Promise<void>((resolve) => {
      webSocket.once('close', () => resolve())
      webSocket.once('open', () => {
        for (const sent of frames) webSocket.send(sent)
        webSocket.close()
      })
    })
  }
  expect((await box.call('GET', '/healthz')).status).toBe(200)
  expect(box.logged.filter((line) => line.includes('"level":"error"'))).toEqual([])
})
