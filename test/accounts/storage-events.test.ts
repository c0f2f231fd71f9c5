import { describe, expect, test } from 'vitest'
import { day, kept } from '../ops/retention/box.ts'
import { card } from '../support/card.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { limit, limitsAsEnv, refused, usage } from './limited.ts'

const storage = (box: Appliance): Promise<number> => usage(box, 'storage_bytes')

/** Another value each time: 15,900 octets. */
const note = (turn: number): string => `${turn}`.padStart(15_900, 'x')

/** Repeats a call until the plan refuses it, at most this many times; answers how often it was done. */
async function until(most: number, call: (turn: number) => Promise<Parameters<typeof refused>[0]>): Promise<number> {
  for (let turn = 0; turn < most; turn += 1) if (refused(await call(turn)) !== null) return turn
  return most
}

describe('what the log keeps of changes takes room of the account', () => {
  test('of an identity: a change beyond the room is refused and leaves no trace, small ones are not', async () => {
    const box = await appliance(limitsAsEnv({ storage_bytes: 100_000 }))
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const at = `/v1/identities/${ada.id}`
    expect(await storage(box)).toBe(0)
    const done = await until(50, (turn) => box.call('PATCH', at, { metadata: { note: note(turn) } }))
    // six of some 15.3 KB each beyond the first KiB fit
    expect(done).toBe(6)
    expect(await storage(box)).toBeGreaterThan(6 * 14_876)
    expect(await storage(box)).toBeLessThanOrEqual(100_000)
    expect((await box.call('GET', at)).body['metadata']).toEqual({ note: note(5) })
    const { body: log } = await box.call('GET', `${at}/events?limit=100`)
    expect(log.data.map(({ type }: { type: string }) => type).filter((type: string) => type === 'identity.updated')).toHaveLength(
      6,
    )
    // it can be stopped all the same, once, and emptied
    expect((await box.call('PATCH', at, { status: 'suspended' })).status).toBe(200)
    expect(refused(await box.call('PATCH', at, { status: 'suspended' }))).toMatch(/storage_bytes/)
    expect((await box.call('PATCH', at, { metadata: { note: null } })).status).toBe(200)
    expect((await box.call('PATCH', at, { status: 'active', name: 'Ada Two' })).status).toBe(200)
    expect(refused(await box.call('POST', '/v1/identities', { metadata: { note: note(0) } }))).toMatch(/storage_bytes/)
  })

  test('of an agent, its links, and reports about others', async () => {
    const box = await appliance(limitsAsEnv({ storage_bytes: 100_000 }))
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada.id, metadata: { note: note(0) } })
    const at = `/v1/agents/${agent.id}`
    expect(await until(50, (turn) => box.call('PATCH', at, { metadata: { note: note(turn) } }))).toBe(5)
    const link = { chain_id: 1, registry: `0x${'1'.repeat(40)}`, token_id: '1', owner_address: `0x${'2'.repeat(40)}` }
    expect(refused(await box.call('POST', `${at}/erc8004`, link))).toMatch(/storage_bytes/)
    await limit(box, { storage_bytes: 120_000 })
    const linked = await box.call('POST', `${at}/erc8004`, link)
    expect(linked.status).toBe(201)
    const report = { type: 'negative', data: { note: note(0) } }
    expect(refused(await box.call('POST', `/v1/identities/${ada.id}/events`, report))).toMatch(/storage_bytes/)
    // what only takes away is done
    expect((await box.call('DELETE', `${at}/erc8004/${linked.body.id}`)).status).toBe(200)
    expect((await box.call('DELETE', at)).status).toBe(200)
  })

  test('mail that comes is told of all the same, and what is ordinary takes its own octets alone', async () => {
    const box = await appliance(limitsAsEnv({ storage_bytes: 20_000 }))
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    expect((await box.call('PATCH', `/v1/identities/${ada.id}`, { metadata: { note: note(0) } })).status).toBe(200)
    const before = await storage(box)
    const raw = message({ Subject: 'News' }, `${'See https://sender.test/page for more. '.repeat(40)}\r\n`)
    expect(await deliver(box.smtp, { to: ada['email'] as string, raw })).toMatch(/^250 /)
    const { body: list } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
    expect((await storage(box)) - before).toBe(list.data[0].size)
  })
})

describe('rows that calls leave without end', () => {
  test('reasons of suppressed addresses count, and are given back with them', async () => {
    const box = await appliance(limitsAsEnv({ storage_bytes: 10_000 }))
    expect((await box.call('POST', '/v1/suppressions', { email: 'sam@far.test', reason: 'asked for it' })).status).toBe(201)
    expect(await storage(box)).toBe(0)
    const reason = 'ü'.repeat(500)
    // 1,000 octets each, of which 256 do not count
    const add = (turn: number) => box.call('POST', '/v1/suppressions', { email: `r${turn}@far.test`, reason })
    expect(await until(50, add)).toBe(13)
    expect(await storage(box)).toBe(13 * 744)
    const { body: list } = await box.call('GET', '/v1/suppressions?limit=100')
    for (const { id } of list.data) await box.call('DELETE', `/v1/suppressions/${id}`)
    expect(await storage(box)).toBe(0)
  })

  test('what a card is spent and revealed for counts, until its identity has been gone for long enough', async () => {
    const { box, at, clock, job } = await kept(limitsAsEnv({ storage_bytes: 10_000 }))
    const { body: made } = await box.call('POST', `${at}/cards`, card())
    const cards = `/v1/cards/${made.id}`
    expect(
      (await box.call('POST', `${cards}/transactions`, { type: 'report', amount_cents: 1, description: 'Stamps' })).status,
    ).toBe(201)
    expect(await storage(box)).toBe(0)
    const report = { type: 'report', amount_cents: 1, description: 'ü'.repeat(500) }
    expect(await until(50, () => box.call('POST', `${cards}/transactions`, report))).toBe(13)
    expect(refused(await box.call('POST', `${cards}/reveal`, { purpose: 'ü'.repeat(500) }))).toMatch(/storage_bytes/)
    expect(refused(await box.call('POST', `${cards}/reveal`, { purpose: 'Stamps' }))).toBe(null)
    await box.call('DELETE', at)
    clock.advance(30 * day + 1000)
    await job('empty-trash')
    expect(await storage(box)).toBe(0)
  })
})

describe('the room is given back', () => {
  test('when the identity has been gone for long enough', async () => {
    const { box, clock, at, job } = await kept()
    for (let turn = 0; turn < 3; turn += 1) await box.call('PATCH', at, { metadata: { note: note(turn) } })
    expect(await storage(box)).toBeGreaterThan(40_000)
    await box.call('DELETE', at)
    clock.advance(30 * day + 1000)
    await job('empty-trash')
    expect(await storage(box)).toBe(0)
  })

  test('when the events are so old that they go', async () => {
    const { box, clock, at, job, mail } = await kept({ PILLARBOX_RETENTION__EVENTS: '10d' })
    for (let turn = 0; turn < 3; turn += 1) await box.call('PATCH', at, { metadata: { note: note(turn) } })
    expect(await storage(box)).toBeGreaterThan(40_000)
    clock.advance(11 * day)
    // the newest event stays
    const id = await mail('Newest')
    const { body: newest } = await box.call('GET', `${at}/emails/${id}`)
    await job('forget-events')
    expect(await storage(box)).toBe(newest['size'])
  })

  test('when a message that is in the trash is purged, not before', async () => {
    const { box, ada, at, job, clock } = await kept()
    // each event of it carries what became of forty recipients
    const to = Array.from({ length: 40 }, (_, number) => ada.email.replace('@', `+${'r'.repeat(50)}${number}@`))
    const send_at = new Date(clock.now() + day).toISOString()
    const { body: sent, status } = await box.call('POST', `${at}/emails`, { to, subject: 'Many', body_text: 'Words.', send_at })
    expect([status, sent['error']]).toEqual([201, undefined])
    const { body: email } = await box.call('GET', `${at}/emails/${sent.id}`)
    expect(await storage(box)).toBeGreaterThan(Number(email['size']) + 4096)
    const full = await storage(box)
    expect((await box.call('DELETE', `${at}/emails/${sent.id}`)).status).toBe(200)
    expect(await storage(box)).toBeGreaterThanOrEqual(full)
    clock.advance(30 * day + 1000)
    await job('empty-trash')
    expect(await storage(box)).toBe(0)
  })
})
