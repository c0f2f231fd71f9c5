import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'

type Any = ReturnType<typeof JSON.parse>

interface World {
  box: Appliance
  ada: Any
  bob: Any
  /** A key with every scope but `holds:decide`. */
  agent: string
  agentId: string
  send: (input?: object, key?: string) => Promise<Any>
  read: (id: string) => Promise<Any>
}

/** A box whose account holds everything, or by another policy, with two identities that have numbers of the loopback provider. */
async function watched(policy: object = { preset: 'all' }, clock?: HeldClock, env: Record<string, string> = {}): Promise<World> {
  const box = await appliance(env, clock)
  const ada = (await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })).body
  const bob = (await box.call('POST', '/v1/identities', { name: 'Bob', provision_phone: true })).body
  const { body: key } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
  expect((await box.call('PATCH', '/v1/policy', policy)).status).toBe(200)
  const path = `/v1/identities/${ada['id']}/sms`
  const send = (input: object = {}, as = key['key'] as string): Promise<Any> =>
    box.call('POST', path, { to: bob['phone_number'], body: 'See you at noon.', ...input }, { key: as })
  const read = async (id: string): Promise<Any> => (await box.call('GET', `${path}/${id}`)).body
  return { box, ada, bob, agent: key['key'], agentId: key['id'], send, read }
}

async function inboxOf({ box, bob }: World): Promise<Any[]> {
  await box.settled()
  return (await box.call('GET', `/v1/identities/${bob.id}/sms?direction=inbound`)).body.data
}

function decide({ box }: World, hold: string, how: 'approve' | 'reject', input: object = {}, key?: string): Promise<Any> {
  return box.call('POST', `/v1/holds/${hold}/${how}`, input, key === undefined ? {} : { key })
}

async function openHolds({ box }: World): Promise<Any[]> {
  return (await box.call('GET', '/v1/holds')).body.data
}

describe('a held text message', () => {
  test('waits, leaves once when it is approved, and says so to its sender', async () => {
    const world = await watched()
    const { status, body } = await world.send()
    expect([status, body.status, body.hold.status, body.sent_at]).toEqual([201, 'held', 'open', null])
    expect(await inboxOf(world)).toEqual([])
    expect(await openHolds(world)).toMatchObject([{ id: body.hold.id, kind: 'sms', about: body.id, created_by: world.agentId }])
    const { body: hold } = await world.box.call('GET', `/v1/holds/${body.hold.id}`)
    expect(hold).toMatchObject({
      reasons: [{ level: 'account', action: 'hold', rule: null, recipient: world.bob.phone_number }],
      sms: { to: world.bob.phone_number, body: 'See you at noon.' },
      email: null,
      card: null,
      sha256: createHash('sha256').update(`${world.bob.phone_number}\nSee you at noon.`).digest('hex'),
    })
    const other = await decide(world, hold.id, 'approve', { sha256: '0'.repeat(64) })
    expect([other.status, other.body.error.code]).toEqual([409, 'hold_changed'])
    const approved = await decide(world, hold.id, 'approve', { sha256: hold.sha256, reason: 'fine' })
    expect([approved.status, approved.body.status]).toEqual([200, 'approved'])
    const again = await decide(world, hold.id, 'approve')
    expect([again.status, again.body.error.code]).toEqual([409, 'already_decided'])
    expect(await inboxOf(world)).toMatchObject([{ body: 'See you at noon.', from: world.ada.phone_number }])
    expect(await world.read(body.id)).toMatchObject({ status: 'delivered', hold: { status: 'approved', reason: 'fine' } })
    expect(await openHolds(world)).toEqual([])
  })

  test('never leaves when it is rejected', async () => {
    const world = await watched()
    const { body } = await world.send()
    expect((await decide(world, body.hold.id, 'reject', { reason: 'too curt' })).body.status).toBe('rejected')
    expect((await decide(world, body.hold.id, 'approve')).body.error.code).toBe('already_decided')
    expect(await inboxOf(world)).toEqual([])
    expect(await world.read(body.id)).toMatchObject({
      status: 'failed',
      error: { code: 'rejected' },
      hold: { status: 'rejected', reason: 'too curt' },
    })
  })

  test('is rejected when nobody decides within three days', async () => {
    const clock = new HeldClock()
    const world = await watched(undefined, clock)
    const { body } = await world.send()
    clock.advance(3 * 86_400_000)
    expect((await decide(world, body.hold.id, 'approve')).body.error.code).toBe('hold_expired')
    await world.box.app.jobs.find(({ name }) => name === 'expire-holds')!.run()
    expect(await world.read(body.id)).toMatchObject({ status: 'failed', error: { code: 'expired' }, hold: { status: 'expired' } })
    expect(await inboxOf(world)).toEqual([])
  })

  test('ends with its deletion, its identity, and the key that sent it', async () => {
    const world = await watched()
    const { box, ada } = world
    const { body: deleted } = await world.send()
    await box.call('DELETE', `/v1/identities/${ada.id}/sms/${deleted.id}`)
    expect((await decide(world, deleted.hold.id, 'approve')).body.error.code).toBe('already_decided')
    expect((await box.call('GET', `/v1/holds/${deleted.hold.id}`)).body).toMatchObject({ status: 'cancelled', sms: null })
    const restored = await box.call('POST', `/v1/identities/${ada.id}/sms/${deleted.id}/restore`)
    expect(restored.body).toMatchObject({ status: 'failed', error: { code: 'deleted' }, hold: { status: 'cancelled' } })

    const { body: sent } = await world.send()
    const { body: ended } = await box.call('DELETE', `/v1/api-keys/${world.agentId}`)
    expect(ended['ended']).toMatchObject({ holds: 1 })
    expect((await decide(world, sent.hold.id, 'approve')).body.error.code).toBe('already_decided')
    await box.app.jobs.find(({ name }) => name === 'expire-holds')!.run()
    expect(await world.read(sent.id)).toMatchObject({
      status: 'failed',
      error: { code: 'cancelled' },
      hold: { status: 'cancelled' },
    })

    const { body: key } = await box.call('POST', '/v1/api-keys', { label: 'another agent' })
    const { body: last } = await world.send({}, key['key'])
    expect(last.status).toBe('held')
    await box.call('DELETE', `/v1/identities/${ada.id}`)
    await box.settled()
    expect((await decide(world, last.hold.id, 'approve')).body.error.code).toBe('already_decided')
    expect(await openHolds(world)).toEqual([])
    expect(await inboxOf(world)).toEqual([])
  })

  test('goes on after the key that sent it, where that was revoked so', async () => {
    const world = await watched()
    const { body } = await world.send()
    await world.box.call('DELETE', `/v1/api-keys/${world.agentId}?keep=true`)
    expect((await decide(world, body.hold.id, 'approve')).status).toBe(200)
    expect(await inboxOf(world)).toHaveLength(1)
  })

  test('fails when its recipient opted out meanwhile', async () => {
    const world = await watched()
    const { box, ada } = world
    const stranger = '+15550100177'
    const { body } = await world.send({ to: stranger })
    await box.call('POST', '/v1/sms/loopback/inject', { from: stranger, to: ada.phone_number, body: 'STOP' })
    expect((await decide(world, body.hold.id, 'approve')).status).toBe(200)
    await box.settled()
    expect(await world.read(body.id)).toMatchObject({ status: 'failed', error: { code: 'recipient_opted_out' } })
    const { body: events } = await box.call('GET', '/v1/events?types=sms.approved,sms.sent,sms.failed')
    expect(events.data.map(({ type }: Any) => type).toReversed()).toEqual(['sms.approved', 'sms.failed'])
  })

  test('counts for the rate while it waits, and no longer when it is rejected', async () => {
    const world = await watched(undefined, undefined, { PILLARBOX_SMS__RATE_PER_IDENTITY: '1' })
    const { body } = await world.send()
    expect((await world.send()).body.error.code).toBe('sms_rate')
    await decide(world, body.hold.id, 'reject')
    const { body: next } = await world.send()
    expect(next.status).toBe('held')
    await world.box.call('DELETE', `/v1/identities/${world.ada.id}/sms/${next.id}`)
    expect((await world.send()).body.status).toBe('held')
  })

  test('is decided by nobody who sent it', async () => {
    const world = await watched()
    const { body: sender } = await world.box.call('POST', '/v1/api-keys', {
      scopes: ['account:write', 'messages:write', 'messages:read', 'holds:decide'],
    })
    const { body } = await world.send({}, sender['key'])
    for (const how of ['approve', 'reject'] as const) {
      const { status, body: answer } = await decide(world, body.hold.id, how, {}, sender['key'])
      expect([status, answer.error.code]).toEqual([403, 'own_hold'])
    }
    const { status, body: answer } = await decide(world, body.hold.id, 'approve', {}, world.agent)
    expect([status, answer.error.code]).toEqual([403, 'insufficient_scope'])
  })

  test('raises events for who listens', async () => {
    const clock = new HeldClock()
    const world = await watched(undefined, clock)
    const ids: Any[] = []
    for (let number = 0; number < 3; number += 1) ids.push((await world.send()).body)
    await decide(world, ids[0].hold.id, 'approve')
    await decide(world, ids[1].hold.id, 'reject')
    await world.box.settled()
    clock.advance(3 * 86_400_000)
    await world.box.app.jobs.find(({ name }) => name === 'expire-holds')!.run()
    const { body } = await world.box.call('GET', `/v1/identities/${world.ada.id}/events?since=2020-01-01T00:00:00Z`)
    const told = body.data.filter(({ type }: Any) => type.startsWith('sms.'))
    const raised = (index: number): string[] =>
      told.filter(({ data }: Any) => data.id === ids[index].id).map(({ type, data }: Any) => `${type} ${data.hold.status}`)
    expect(raised(0)).toEqual(['sms.held open', 'sms.approved approved', 'sms.sent approved', 'sms.delivered approved'])
    expect(raised(1)).toEqual(['sms.held open', 'sms.rejected rejected'])
    expect(raised(2)).toEqual(['sms.held open', 'sms.expired expired'])
    expect(told).toHaveLength(8)
  })
})

describe('a policy for text messages', () => {
  test('sends all by default, and what a person with a session sends is not held', async () => {
    const world = await watched({ preset: 'open' })
    expect((await world.send()).body).toMatchObject({ status: 'queued', hold: null })
    expect(await inboxOf(world)).toHaveLength(1)
    expect(await openHolds(world)).toEqual([])
  })

  test('refuses without a word about its rules, and stores nothing', async () => {
    const world = await watched({ rules: [{ when: { channel: ['sms'], links: true }, action: 'refuse' }] })
    const { status, body } = await world.send({ body: 'Look: https://example.test/x' })
    expect([status, body.error.code]).toEqual([403, 'policy_refused'])
    expect(JSON.stringify(body)).not.toMatch(/rule|links/)
    expect((await world.send({ body: 'No link.' })).body.status).toBe('queued')
    const { body: list } = await world.box.call('GET', `/v1/identities/${world.ada.id}/sms`)
    expect(list.data).toHaveLength(1)
  })

  test('holds a text in which a secret is found, with where it is', async () => {
    const world = await watched({ rules: [{ when: { found: ['secret'] }, action: 'hold' }] })
    const { body } = await world.send({ body: `The key is AKIA${'ABCDEFGH'.repeat(2)}` })
    expect(body.status).toBe('held')
    const { body: hold } = await world.box.call('GET', `/v1/holds/${body.hold.id}`)
    expect(hold).toMatchObject({ found: [{ kind: 'secret', place: 'body', sample: 'AKIA••••••••' }], reasons: [{ rule: 0 }] })
    expect((await world.send({ body: 'Nothing to see.' })).body.status).toBe('queued')
  })

  test('of rules for e-mail alone lets text messages leave', async () => {
    const world = await watched({ rules: [{ when: { channel: ['email'] }, action: 'hold' }] })
    expect((await world.send()).body.status).toBe('queued')
  })

  test('known: holds what goes to a new number until a person approved one, and sends to numbers of the account', async () => {
    const world = await watched({ preset: 'known' })
    expect((await world.send()).body.status).toBe('queued')
    const stranger = '+15550100177'
    const { body } = await world.send({ to: stranger })
    expect(body.status).toBe('held')
    await decide(world, body.hold.id, 'approve')
    expect((await world.send({ to: stranger })).body.status).toBe('queued')
  })
})
