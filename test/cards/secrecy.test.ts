import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
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
  const search = new Search([encrypted_data])
  expect(told.length).toBeGreaterThan(15)
  expect(outside.frames.length).toBeGreaterThan(5)
  for (const [where, texts] of Object.entries(outside)) {
    expect([where, texts.filter((text) => search.finds(Buffer.from(text)))]).toEqual([where, []])
  }
  expect(rowsThatHold(box, search)).toEqual(['card_secrets', 'card_secrets'])
  expect(files(box).filter((file) => search.finds(readFileSync(file)))).toEqual(
    expect.arrayContaining([expect.stringMatching(/pillarbox\.db(?:-wal)?$/)]),
  )
})

test('of cancelled cards, and of those of a deleted identity, no octet is left on disk once the box has stopped', async () => {
  const box = await appliance()
  const at = await cardsOf(box, 'Ada')
  const doomed = await cardsOf(box, 'Bob')
  const sizes = ['', 'x'.repeat(400), 'x'.repeat(3900), 'x'.repeat(5000)]
  const secrets = Array.from({ length: 120 }, (_, turn) => blob(`{"number":"4242424242424242"}${sizes[turn % sizes.length]!}`))
  const paths: string[] = []
  for (let turn = 0; turn < secrets.length; turn += 10) {
    const some = secrets.slice(turn, turn + 10).map(async (encrypted_data, index) => {
      const lost = index % 3 === 0
      const path = await stored({ box, at: lost ? doomed : at }, { encrypted_data, budget_cents: 1_000_000 })
      if (!lost) paths.push(path)
      // rows that grow move about in their page
      await box.call('POST', `${path}/reveal`, { amount_cents: 10 ** (index % 6) })
    })
    await Promise.all(some)
  }
  await box.restart()
  const every = new Search(secrets)
  expect(files(box).filter((file) => every.finds(readFileSync(file)))).not.toEqual([])
  await Promise.all(
    paths.map(async (path, index) => {
      if (index % 2 === 0) await box.call('POST', `${path}/reveal`, { amount_cents: 70_000 })
      expect((await box.call('POST', `${path}/cancel`)).status).toBe(200)
    }),
  )
  expect((await box.call('DELETE', doomed.replace('/cards', ''))).status).toBe(200)
  await box.restart()
  expect(inside(box, `SELECT count(*) AS kept FROM cards WHERE status <> 'cancelled'`)).toEqual([{ kept: 0 }])
  expect(files(box).filter((file) => every.finds(readFileSync(file)))).toEqual([])
})

/** Looks for pieces of secrets, 16 octets each, as they are, in hex and in base64. */
class Search {
  readonly #pieces = new Map<number, Set<string>>()

  constructor(secrets: string[]) {
    for (const secret of secrets) {
      const octets = Buffer.from(secret, 'base64')
      this.#add(octets.toString('latin1'), 16, 8)
      this.#add(octets.toString('hex'), 32, 16)
      this.#add(secret, 24, 12)
    }
  }

  finds(bytes: Buffer): boolean {
    const text = bytes.toString('latin1')
    for (const [size, known] of this.#pieces) {
      for (let start = 0; start + size <= text.length; start += 1) if (known.has(text.slice(start, start + size))) return true
    }
    return false
  }

  #add(text: string, size: number, step: number): void {
    const known = this.#pieces.get(size) ?? new Set()
    this.#pieces.set(size, known)
    for (let start = 0; start + size <= text.length; start += step) known.add(text.slice(start, start + size))
  }
}

/** The table of each row of the store that holds a secret. */
function rowsThatHold(box: Appliance, search: Search): string[] {
  const tables = inside<{ name: string }>(box, `SELECT name FROM sqlite_schema WHERE type = 'table'`)
  return tables.flatMap(({ name }) =>
    inside<Record<string, unknown>>(box, `SELECT * FROM "${name}"`)
      .filter((row) => Object.values(row).some((value) => value !== null && search.finds(octetsOf(value))))
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
