import { describe, expect, test, vi } from 'vitest'
import { accountKey } from '../support/account-key.ts'
import { addedDomain } from '../support/verified-domain.ts'
import { HeldClock } from '../support/held-clock.ts'
import { pair, type Pair } from '../outbound/outgoing.ts'

type Any = ReturnType<typeof JSON.parse>

/** A box whose account holds everything, and the key of an agent with every scope but `holds:decide`, bound to ada or not. */
async function watched(
  policy: object = { preset: 'all' },
  clock?: HeldClock,
  isBound = true,
): Promise<{ world: Pair; agent: string }> {
  const world = await pair({}, clock)
  const { body } = await world.box.call('POST', '/v1/api-keys', {
    label: 'agent',
    ...(isBound ? { identity_id: world.ada.id } : {}),
  })
  expect(body.scopes).not.toContain('holds:decide')
  expect((await world.box.call('PATCH', '/v1/policy', policy)).status).toBe(200)
  return { world, agent: body.key }
}

function sendAs({ box, ada }: Pair, key: string, input: object): Promise<Any> {
  return box.call('POST', `/v1/identities/${ada.id}/emails`, input, { key })
}

function read({ box, ada }: Pair, id: string, key?: string): Promise<Any> {
  return box.call('GET', `/v1/identities/${ada.id}/emails/${id}`, undefined, key === undefined ? {} : { key })
}

async function inboxOf({ box, bob }: Pair): Promise<Any[]> {
  return (await box.call('GET', `/v1/identities/${bob.id}/emails`)).body.data
}

function openHolds({ box }: Pair): Promise<Any> {
  return box.call('GET', '/v1/holds')
}

describe('a held e-mail', () => {
  test('waits unsigned, leaves when it is approved, and says so to its sender', async () => {
    const { world, agent } = await watched()
    const { status, body } = await sendAs(world, agent, { to: world.bob.email, subject: 'Please', body_text: 'Hello Bob.' })
    expect([status, body.status, body.hold.status]).toEqual([201, 'held', 'open'])
    expect(body.deliveries).toMatchObject([{ recipient: world.bob.email, status: 'held', next_attempt_at: null }])
    await world.box.settled()
    expect(await inboxOf(world)).toEqual([])
    const { body: list } = await openHolds(world)
    expect(list.data).toMatchObject([
      { id: body.hold.id, kind: 'email', about: body.id, status: 'open', identity_id: world.ada.id },
    ])
    const { body: hold } = await world.box.call('GET', `/v1/holds/${body.hold.id}`)
    expect(hold).toMatchObject({
      reasons: [{ level: 'account', action: 'hold', rule: null, recipient: world.bob.email }],
      email: { subject: 'Please', body_text: 'Hello Bob.', recipients: { to: [{ address: world.bob.email }] } },
    })
    const approved = await world.box.call('POST', `/v1/holds/${hold.id}/approve`, { sha256: hold.sha256, reason: 'fine' })
    expect([approved.status, approved.body.status, approved.body.reason]).toEqual([200, 'approved', 'fine'])
    await world.box.settled()
    expect(await inboxOf(world)).toMatchObject([{ subject: 'Please' }])
    const { body: after } = await read(world, body.id, agent)
    expect([after.status, after.hold.status, after.hold.reason]).toEqual(['delivered', 'approved', 'fine'])
    expect((await openHolds(world)).body.data).toEqual([])
  })

  test('of a deleted identity is cancelled, and its hold is there without the e-mail', async () => {
    const { world, agent } = await watched()
    const { body } = await sendAs(world, agent, { to: world.bob.email })
    expect((await world.box.call('DELETE', `/v1/identities/${world.ada.id}`)).status).toBe(200)
    const hold = () => world.box.call('GET', `/v1/holds/${body.hold.id}`)
    const approved = async () => (await world.box.call('POST', `/v1/holds/${body.hold.id}/approve`, {})).status
    expect(await hold()).toMatchObject({ status: 200, body: { email: null } })
    expect(await approved()).toBe(409)
    await world.box.settled()
    expect(await hold()).toMatchObject({ status: 200, body: { status: 'cancelled', email: null } })
    expect(await approved()).toBe(409)
    expect(await inboxOf(world)).toEqual([])
  })

  test('never leaves when it is rejected, and is decided once', async () => {
    const { world, agent } = await watched()
    const { body } = await sendAs(world, agent, { to: world.bob.email })
    const rejected = await world.box.call('POST', `/v1/holds/${body.hold.id}/reject`, { reason: 'too short' })
    expect([rejected.status, rejected.body.status]).toEqual([200, 'rejected'])
    const late = await world.box.call('POST', `/v1/holds/${body.hold.id}/approve`, {})
    expect([late.status, late.body.error.code]).toEqual([409, 'already_decided'])
    await world.box.settled()
    expect(await inboxOf(world)).toEqual([])
    const { body: after } = await read(world, body.id, agent)
    expect([after.status, after.hold.status, after.hold.reason]).toEqual(['cancelled', 'rejected', 'too short'])
    expect(after.deliveries).toMatchObject([{ status: 'cancelled', response: 'a person rejected it' }])
  })

  test('is rejected when nobody decides within three days', async () => {
    const clock = new HeldClock()
    const { world, agent } = await watched(undefined, clock)
    const { body } = await sendAs(world, agent, { to: world.bob.email })
    clock.advance(3 * 86_400_000)
    const late = await world.box.call('POST', `/v1/holds/${body.hold.id}/approve`, {})
    expect([late.status, late.body.error.code]).toEqual([409, 'hold_expired'])
    await world.box.app.jobs.find(({ name }) => name === 'expire-holds')!.run()
    await world.box.settled()
    expect((await read(world, body.id, agent)).body).toMatchObject({ status: 'cancelled', hold: { status: 'expired' } })
    expect(await inboxOf(world)).toEqual([])
  })

  test('with a send_at leaves no earlier', async () => {
    const clock = new HeldClock()
    const { world, agent } = await watched(undefined, clock)
    const { body } = await sendAs(world, agent, { to: world.bob.email, send_at: '2026-11-21T10:00:00.000Z' })
    expect(body.status).toBe('held')
    await world.box.call('POST', `/v1/holds/${body.hold.id}/approve`, {})
    await world.box.settled()
    expect((await read(world, body.id)).body.status).toBe('scheduled')
    clock.advance(86_400_000)
    await world.box.settled()
    expect(await inboxOf(world)).toHaveLength(1)
  })

  test('is cancelled by its sender, with its hold; and its time cannot be changed', async () => {
    const { world, agent } = await watched()
    const { body } = await sendAs(world, agent, { to: world.bob.email })
    const path = `/v1/identities/${world.ada.id}/emails/${body.id}`
    const moved = await world.box.call('PATCH', path, { send_at: '2026-11-20T00:00:00Z' }, { key: agent })
    expect([moved.status, moved.body.error.code]).toEqual([409, 'not_scheduled'])
    const cancelled = await world.box.call('POST', `${path}/cancel`, undefined, { key: agent })
    expect(cancelled.body).toMatchObject({ status: 'cancelled', hold: { status: 'cancelled' } })
    expect((await world.box.call('POST', `/v1/holds/${body.hold.id}/approve`, {})).status).toBe(409)
    const { body: thrown } = await sendAs(world, agent, { to: world.bob.email })
    await world.box.call('DELETE', `/v1/identities/${world.ada.id}/emails/${thrown.id}`, undefined, { key: agent })
    expect((await openHolds(world)).body.data).toEqual([])
    await world.box.settled()
    expect(await inboxOf(world)).toEqual([])
  })

  test('ends with the key that sent it', async () => {
    const { world, agent } = await watched()
    const { body } = await sendAs(world, agent, { to: world.bob.email })
    const { body: keys } = await world.box.call('GET', '/v1/api-keys')
    const { id } = keys.data.find(({ label }: Any) => label === 'agent')
    await world.box.call('DELETE', `/v1/api-keys/${id}`)
    await vi.waitFor(async () => expect((await read(world, body.id)).body.status).toBe('cancelled'))
    expect((await openHolds(world)).body.data).toEqual([])
    expect(await inboxOf(world)).toEqual([])
  })

  test('is one of a hundred of an identity at most', async () => {
    const { world, agent } = await watched()
    for (let number = 0; number < 100; number += 1) expect((await sendAs(world, agent, { to: world.bob.email })).status).toBe(201)
    const { status, body } = await sendAs(world, agent, { to: world.bob.email })
    expect([status, body.error.code]).toEqual([429, 'too_many_holds'])
  })

  test('raises events for who listens', async () => {
    const { world, agent } = await watched()
    const { body: one } = await sendAs(world, agent, { to: world.bob.email })
    const { body: other } = await sendAs(world, agent, { to: world.bob.email })
    await world.box.call('POST', `/v1/holds/${one.hold.id}/approve`, {})
    await world.box.call('POST', `/v1/holds/${other.hold.id}/reject`, {})
    const { body } = await world.box.call('GET', '/v1/events?types=email.held,email.approved,email.rejected', undefined, {
      key: agent,
    })
    expect(body.data.toReversed().map(({ type, data }: Any) => [type, data.id, data.hold.status])).toEqual([
      ['email.held', one.id, 'open'],
      ['email.held', other.id, 'open'],
      ['email.approved', one.id, 'approved'],
      ['email.rejected', other.id, 'rejected'],
    ])
  })
})

describe('a scheduled e-mail whose policy is changed before it is due', () => {
  const at = '2026-11-21T10:00:00.000Z'

  /** A message that was accepted while everything was sent; the box is at its time once `due` resolves. */
  async function scheduled(input: object = {}): Promise<{ world: Pair; email: Any; due: () => Promise<void> }> {
    const clock = new HeldClock()
    const { world, agent } = await watched({ preset: 'open' }, clock)
    const { body: email } = await sendAs(world, agent, { to: world.bob.email, send_at: at, ...input })
    expect(email.status).toBe('scheduled')
    const due = async (): Promise<void> => {
      clock.advance(86_400_000)
      await world.box.settled()
    }
    return { world, email, due }
  }

  test('is held, and leaves when it is approved', async () => {
    const { world, email, due } = await scheduled({ require_tls: false })
    await world.box.call('PATCH', '/v1/policy', { preset: 'all' })
    await due()
    expect(await inboxOf(world)).toEqual([])
    const { body: after } = await read(world, email.id)
    expect(after).toMatchObject({
      status: 'held',
      hold: { status: 'open' },
      deliveries: [{ status: 'held', next_attempt_at: null }],
    })
    const { body: hold } = await world.box.call('GET', `/v1/holds/${after.hold.id}`)
    expect(hold).toMatchObject({ created_by: email.created_by, reasons: [{ level: 'account', rule: null }] })
    const approved = await world.box.call('POST', `/v1/holds/${hold.id}/approve`, { sha256: hold.sha256 })
    expect(approved.status).toBe(200)
    await world.box.settled()
    expect(await inboxOf(world)).toHaveLength(1)
    expect((await read(world, email.id)).body).toMatchObject({ status: 'delivered', hold: { status: 'approved' } })
  })

  test('is held for what is found in it', async () => {
    const secret = ['gh', 'p_16C7e42F292c6912E7710c838347Ae178B4a'].join('')
    const { world, email, due } = await scheduled({ body_text: `token: ${secret}` })
    await world.box.call('PATCH', '/v1/policy', { rules: [{ when: { found: ['secret'] }, action: 'hold' }] })
    await due()
    const { body: after } = await read(world, email.id)
    expect(after.status).toBe('held')
    const { body: hold } = await world.box.call('GET', `/v1/holds/${after.hold.id}`)
    expect(hold.found).toContainEqual(expect.objectContaining({ kind: 'secret', place: 'body_text' }))
  })

  test('fails when it is refused by now', async () => {
    const { world, email, due } = await scheduled()
    await world.box.call('PATCH', '/v1/policy', { rules: [{ when: {}, action: 'refuse' }] })
    await due()
    expect(await inboxOf(world)).toEqual([])
    const { body: after } = await read(world, email.id)
    expect(after).toMatchObject({ status: 'failed', hold: null })
    expect(after.deliveries[0].response).toBe('the policy of its account does not let it leave')
  })

  test('leaves when a person has approved it before', async () => {
    const clock = new HeldClock()
    const { world, agent } = await watched({ preset: 'all' }, clock)
    const { body } = await sendAs(world, agent, { to: world.bob.email, send_at: at })
    await world.box.call('POST', `/v1/holds/${body.hold.id}/approve`, {})
    await world.box.call('PATCH', '/v1/policy', { rules: [{ when: {}, action: 'refuse' }] })
    clock.advance(86_400_000)
    await world.box.settled()
    expect(await inboxOf(world)).toHaveLength(1)
  })
})

describe('nobody but a person or a key of theirs decides', () => {
  test('an agent with every other scope neither decides nor sees or changes a rule', async () => {
    const { world, agent } = await watched(undefined, undefined, false)
    const { body } = await sendAs(world, agent, { to: world.bob.email })
    const tries: [string, string, object?][] = [
      ['GET', '/v1/policy'],
      ['PATCH', '/v1/policy', { preset: 'open' }],
      ['GET', `/v1/identities/${world.ada.id}/policy`],
      ['PATCH', `/v1/identities/${world.ada.id}/policy`, { preset: 'open' }],
      ['GET', '/v1/holds'],
      ['GET', `/v1/holds/${body.hold.id}`],
      ['POST', `/v1/holds/${body.hold.id}/approve`, {}],
      ['POST', `/v1/holds/${body.hold.id}/reject`, {}],
    ]
    for (const [method, path, input] of tries) {
      const { status, body: answer } = await world.box.call(method, path, input, { key: agent })
      expect([path, status, answer.error.code]).toEqual([path, 403, 'insufficient_scope'])
    }
    const made = await world.box.call('POST', '/v1/api-keys', { scopes: ['holds:decide'] }, { key: agent })
    expect([made.status, made.body.error.code]).toEqual([403, 'missing_scope'])
    expect(JSON.stringify((await read(world, body.id, agent)).body)).not.toMatch(/preset|"rule"|reasons/)
  })

  test('a key that is bound to an identity does not, whatever its scopes', async () => {
    const { world, agent } = await watched()
    const { body } = await sendAs(world, agent, { to: world.bob.email })
    const { body: key } = await world.box.call('POST', '/v1/api-keys', { scopes: ['holds:decide'], identity_id: world.bob.id })
    for (const path of [`/v1/holds/${body.hold.id}/approve`, `/v1/holds/${body.hold.id}/reject`]) {
      const { status, body: answer } = await world.box.call('POST', path, {}, { key: key.key })
      expect([status, answer.error.code]).toEqual([403, 'bound_key'])
    }
  })

  test('the sender does not, nor a key that it made', async () => {
    const { world } = await watched()
    const { body: sender } = await world.box.call('POST', '/v1/api-keys', {
      scopes: ['account:write', 'messages:write', 'messages:read', 'holds:decide'],
    })
    const { body: made } = await world.box.call('POST', '/v1/api-keys', { scopes: ['holds:decide'] }, { key: sender.key })
    const { body } = await sendAs(world, sender.key, { to: world.bob.email })
    expect(body.status).toBe('held')
    for (const key of [sender.key, made.key]) {
      const { status, body: answer } = await world.box.call('POST', `/v1/holds/${body.hold.id}/approve`, {}, { key })
      expect([status, answer.error.code]).toEqual([403, 'own_hold'])
    }
    expect((await world.box.call('POST', `/v1/holds/${body.hold.id}/approve`, {})).status).toBe(200)
  })

  test.each(['anybody@shop.example', 'sales@shop.example', 'postmaster@shop.example', 'nobody@pillarbox.test'])(
    '%s of another account, or of nobody, is not one of its own addresses',
    async (to) => {
      const { world, agent } = await watched({ preset: 'known' })
      const { box } = world
      const key = accountKey(box)
      const { id } = await addedDomain(box, 'shop.example', key)
      const { body: shop } = await box.call('POST', '/v1/identities', { name: 'Shop' }, { key })
      await box.call('POST', `/v1/domains/${id}/aliases`, { local_part: 'sales', identity_id: shop.id }, { key })
      expect((await box.call('PATCH', `/v1/domains/${id}`, { catch_all: shop.id }, { key })).body.catch_all).toBe(shop.id)
      const { body } = await sendAs(world, agent, { to, subject: 'Out', body_text: 'Hello.' })
      expect(body.status).toBe('held')
    },
  )

  test('another account finds no hold', async () => {
    const { world, agent } = await watched()
    const { body } = await sendAs(world, agent, { to: world.bob.email })
    const other = accountKey(world.box)
    expect((await world.box.call('POST', `/v1/holds/${body.hold.id}/approve`, {}, { key: other })).status).toBe(404)
  })
})
