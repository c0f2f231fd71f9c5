import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import type { Appliance } from '../support/appliance.ts'
import { blob, card } from '../support/card.ts'
import { connect } from '../support/live.ts'
import { WebhookSink } from '../support/webhook-sink.ts'
import { cardsOf, inside, stored } from './settled.ts'

test('the encrypted data is in its row and in reveals, and nowhere else', async () => {
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const sink = await WebhookSink.start()
  await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['*'] })
  const at = await cardsOf(box, 'Ada')
  const [, , , identity_id] = at.split('/')
  const socket = await connect(box)
  socket.say({ type: 'subscribe', channel: 'agent_events', identity_id })
  await socket.until('subscribed')
  const encrypted_data = blob()
  const told: string[] = []
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<void> => {
    told.push(JSON.stringify((await box.call(method, path, body, { headers })).body))
  }
  const once = { 'Idempotency-Key': 'once' }
  const path = await stored({ box, at }, { encrypted_data })
  await ask('POST', at, card({ encrypted_data }), once)
  await ask('POST', at, card({ encrypted_data }), once)
  await ask('POST', at, card({ encrypted_data, exp_year: 2020 }))
  await ask('POST', at, card({ encrypted_data, encrypted: encrypted_data }))
  await ask('POST', at, card({ encrypted_data: `${encrypted_data}!` }))
  await ask('POST', at, card({ encrypted_data, last4: encrypted_data }))
  await ask('POST', `${at}/${encrypted_data.replaceAll('/', '_')}`)
  const revealed = []
  for (const headers of [{}, once, once, { ...once, 'User-Agent': 'other' }]) {
    revealed.push(await box.call('POST', `${path}/reveal`, { amount_cents: 10 }, { headers }))
    revealed.push(await box.call('GET', `${path}/reveal?amount_cents=10`, undefined, { headers }))
  }
  await ask('POST', `${path}/reveal`, { amount_cents: 100_000 })
  await ask('POST', `${path}/reveal`, { encrypted_data })
  await ask('GET', at)
  await ask('GET', path)
  await ask('PATCH', `${path}/limits`, { reset_spent: true })
  await ask('GET', `${path}/limits`)
  await ask('POST', `${path}/transactions`, { type: 'report', amount_cents: 5 })
  await ask('GET', `${path}/transactions`)
  for (const call of ['freeze', 'reveal', 'unfreeze']) await ask('POST', `${path}/${call}`)
  await ask('GET', `/v1/identities/${identity_id}/events?limit=200`)
  await ask('GET', `/v1/identities/${identity_id}/messages`)
  await sink.until(1, ({ body }) => body.event === 'card.unfrozen')
  for (;;) {
    const frames = await socket.until('event')
    if (frames.some(({ event }) => event.type === 'card.unfrozen')) break
    await new Promise((resolve) => setTimeout(resolve, 10))
  }

  for (const { status, headers, body } of revealed) {
    expect([status, headers.get('cache-control'), body['encrypted_data']]).toEqual([200, 'no-store', encrypted_data])
  }
  const outside = {
    answers: told,
    logs: box.logged,
    metrics: [await box.app.metrics.text()],
    webhooks: sink.received.map(({ raw, headers }) => raw + JSON.stringify(headers)),
    frames: socket.frames.map((frame) => JSON.stringify(frame)),
  }
  expect(told.length).toBeGreaterThan(15)
  expect(outside.frames.length).toBeGreaterThan(5)
  for (const [where, texts] of Object.entries(outside)) {
    expect([where, texts.filter((text) => holds(Buffer.from(text), encrypted_data))]).toEqual([where, []])
  }
  expect(rowsThatHold(box, encrypted_data)).toEqual(['card_secrets', 'card_secrets'])
  expect(files(box).filter((file) => holds(readFileSync(file), encrypted_data))).toEqual(
    expect.arrayContaining([expect.stringMatching(/pillarbox\.db(?:-wal)?$/)]),
  )
})

test('of cancelled cards, and of those of a deleted identity, no octet is left on disk once the box has stopped', async () => {
  const box = await appliance()
  const at = await cardsOf(box, 'Ada')
  const doomed = await cardsOf(box, 'Bob')
  const sizes = ['', 'x'.repeat(400), 'x'.repeat(3900), 'x'.repeat(5000)]
  const secrets: string[] = []
  const paths: string[] = []
  for (let turn = 0; turn < 120; turn += 1) {
    const encrypted_data = blob(`{"number":"4242424242424242"}${sizes[turn % sizes.length]!}`)
    secrets.push(encrypted_data)
    const path = await stored({ box, at: turn % 3 === 0 ? doomed : at }, { encrypted_data, budget_cents: 1_000_000 })
    if (turn % 3 !== 0) paths.push(path)
    // rows that grow move about in their page
    await box.call('POST', `${path}/reveal`, { amount_cents: 10 ** (turn % 6) })
  }
  await box.restart()
  for (const path of paths.filter((_, index) => index % 2 === 0))
    await box.call('POST', `${path}/reveal`, { amount_cents: 70_000 })
  for (const path of paths) expect((await box.call('POST', `${path}/cancel`)).status).toBe(200)
  expect((await box.call('DELETE', doomed.replace('/cards', ''))).status).toBe(200)
  await box.restart()
  expect(inside(box, `SELECT count(*) AS kept FROM cards WHERE status <> 'cancelled'`)).toEqual([{ kept: 0 }])
  const left = files(box).map((file) => [file, readFileSync(file)] as const)
  const found = secrets.flatMap((secret) => left.filter(([, bytes]) => holds(bytes, secret)).map(([file]) => file))
  expect(found).toEqual([])
})

/** Whether octets hold any 16 of a secret, as they are, in base64 or in hex. */
function holds(bytes: Buffer, secret: string): boolean {
  const octets = Buffer.from(secret, 'base64')
  for (let start = 0; start + 16 <= octets.length; start += 8) {
    const piece = octets.subarray(start, start + 16)
    if (bytes.includes(piece) || bytes.includes(piece.toString('hex'))) return true
  }
  for (let start = 0; start + 24 <= secret.length; start += 12) {
    if (bytes.includes(secret.slice(start, start + 24))) return true
  }
  return false
}

/** The table of each row of the store that holds a secret. */
function rowsThatHold(box: Appliance, secret: string): string[] {
  const tables = inside<{ name: string }>(box, `SELECT name FROM sqlite_schema WHERE type = 'table'`)
  return tables.flatMap(({ name }) =>
    inside<Record<string, unknown>>(box, `SELECT * FROM "${name}"`)
      .filter((row) => Object.values(row).some((value) => value !== null && holds(octetsOf(value), secret)))
      .map(() => name),
  )
}

function octetsOf(value: unknown): Buffer {
  return value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(String(value))
}

function files({ directory }: Appliance): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
