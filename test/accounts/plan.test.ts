import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { planned, type Planned } from '../../src/core/planned.ts'
import { type Answer, appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { HeldClock } from '../support/held-clock.ts'
import { limit, limitsAsEnv, refused, subscription, usage } from './limited.ts'

type Made = Answer<{ id: string; send_at?: string; error?: Record<string, unknown> }>

/** Ada of a box, who has a number. */
async function home(env: Record<string, string> = {}, clock?: HeldClock): Promise<{ box: Appliance; ada: string }> {
  const box = await appliance(env, clock)
  const { status, body } = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return { box, ada: body.id as string }
}

async function another(box: Appliance): Promise<string> {
  const { body } = await box.call('POST', '/v1/identities', {})
  return body.id as string
}

interface Thing {
  make: (box: Appliance, ada: string) => Promise<Made>
  /** Takes one away again; left out where what was used stays used. */
  drop?: (box: Appliance, ada: string, made: Made['body']) => Promise<Made>
}

const things: Record<Exclude<Planned, 'storage_bytes'>, Thing> = {
  identities: {
    make: (box) => box.call('POST', '/v1/identities', {}),
    drop: (box, _ada, { id }) => box.call('DELETE', `/v1/identities/${id}`),
  },
  domains: {
    make: (box) => box.call('POST', '/v1/domains', { name: `${randomUUID().slice(0, 8)}.example` }),
    drop: (box, _ada, { id }) => box.call('DELETE', `/v1/domains/${id}`),
  },
  aliases: {
    make: async (box, ada) => {
      const { body } = await box.call('GET', '/v1/domains')
      const input = { local_part: randomUUID().slice(0, 8), identity_id: ada }
      return box.call('POST', `/v1/domains/${body.data[0].id}/aliases`, input)
    },
    drop: async (box, _ada, { id }) => {
      const { body } = await box.call('GET', '/v1/domains')
      return box.call('DELETE', `/v1/domains/${body.data[0].id}/aliases/${id}`)
    },
  },
  webhooks: {
    make: (box) => box.call('POST', '/v1/webhooks', { url: 'https://receiver.test/hook', events: ['email.received'] }),
    drop: (box, _ada, { id }) => box.call('DELETE', `/v1/webhooks/${id}`),
  },
  api_keys: {
    make: (box) => box.call('POST', '/v1/api-keys', {}),
    drop: (box, _ada, { id }) => box.call('DELETE', `/v1/api-keys/${id}`),
  },
  phone_numbers: {
    make: async (box) => box.call('POST', `/v1/identities/${await another(box)}/phone`, {}),
    drop: (box, _ada, { id }) => box.call('DELETE', `/v1/identities/${id}/phone`),
  },
  cards: {
    make: (box, ada) => box.call('POST', `/v1/identities/${ada}/cards`, card()),
    drop: (box, _ada, { id }) => box.call('POST', `/v1/cards/${id}/cancel`),
  },
  totp_entries: {
    make: (box, ada) => box.call('POST', `/v1/identities/${ada}/totp`, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'shop' }),
    drop: (box, ada, { id }) => box.call('DELETE', `/v1/identities/${ada}/totp/${id}`),
  },
  agents: {
    make: async (box) => box.call('POST', '/v1/agents', { identity_id: await another(box) }),
    drop: (box, _ada, { id }) => box.call('DELETE', `/v1/agents/${id}`),
  },
  emails_sent: {
    make: (box, ada) => {
      // however many recipients, it is one message; and late enough to be taken back
      const to = ['ada@pillarbox.test', 'postmaster@pillarbox.test']
      return box.call('POST', `/v1/identities/${ada}/emails`, { to, send_at: '2026-11-29T00:00:00Z', body: 'Hello' })
    },
    drop: (box, ada, { id }) => box.call('POST', `/v1/identities/${ada}/emails/${id}/cancel`),
  },
  sms_sent: { make: (box, ada) => box.call('POST', `/v1/identities/${ada}/sms`, { to: '+15550100199', body: 'x'.repeat(400) }) },
}
const names = Object.keys(things) as (keyof typeof things)[]

test('a box without limits says so, and what is used of everything', async () => {
  const { box } = await home({}, new HeldClock())
  const limits = Object.fromEntries(planned.map((what) => [what, null]))
  const zeros = Object.fromEntries(planned.map((what) => [what, 0]))
  expect(await subscription(box)).toEqual({
    plan: 'self_hosted',
    status: 'active',
    limits,
    usage: { ...zeros, identities: 1, phone_numbers: 1, api_keys: 1 },
    current_period_start: '2026-11-01T00:00:00.000Z',
    current_period_end: '2026-12-01T00:00:00.000Z',
  })
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: await another(box) })
  const asked = await box.call('GET', '/v1/billing/subscription', undefined, { key: bound.key })
  expect([asked.status, asked.body.error['type']]).toEqual([404, 'not_found'])
})

describe('a limit', () => {
  test.each(names)('of %s lets through as many as it says, and one more when one is gone', async (what) => {
    const { box, ada } = await home({}, new HeldClock())
    const { make, drop } = things[what]
    const most = (await usage(box, what)) + 2
    await limit(box, { [what]: most })
    const first = await make(box, ada)
    expect([refused(first), refused(await make(box, ada))]).toEqual([null, null])
    const why = refused(await make(box, ada))
    expect(why).toMatch(new RegExp(`^This account may .*\\b${most}\\b.*, or ask the operator to raise limits\\.${what}\\.$`))
    const { limits, usage: used } = await subscription(box)
    expect([limits[what], used[what]]).toEqual([most, most])
    if (!drop) return
    expect((await drop(box, ada, first.body)).status).toBe(200)
    expect(await usage(box, what)).toBe(most - 1)
    expect(refused(await make(box, ada))).toBeNull()
    expect(refused(await make(box, ada))).not.toBeNull()
  })

  test.each<[what: keyof typeof things, room: number]>([
    ['identities', 50],
    ['cards', 7],
    ['api_keys', 31],
    ['emails_sent', 40],
  ])('of %s is kept by 200 calls at once', async (what, room) => {
    const { box, ada } = await home({}, new HeldClock())
    const most = (await usage(box, what)) + room
    await limit(box, { [what]: most })
    const answers = await Promise.all(Array.from({ length: 200 }, () => things[what].make(box, ada)))
    const refusals = answers.map(refused).filter((why) => why !== null)
    expect(refusals.length).toBe(200 - room)
    expect(await usage(box, what)).toBe(most)
  })

  test('of identities buys no number for one that is refused, and one of numbers makes no identity', async () => {
    const { box } = await home()
    const input = { name: 'Bob', provision_phone: true }
    await limit(box, { identities: 1 })
    expect(refused(await box.call('POST', '/v1/identities', input))).toMatch(/limits\.identities/)
    await limit(box, { phone_numbers: 1 })
    expect(refused(await box.call('POST', '/v1/identities', input))).toMatch(/limits\.phone_numbers/)
    expect(await usage(box, 'identities')).toBe(1)
    expect(await usage(box, 'phone_numbers')).toBe(1)
    expect(box.logged.join('')).not.toContain('phone.provisioned"')
  })

  test('below what there is takes nothing away', async () => {
    const { box, ada } = await home({}, new HeldClock())
    const made = [await things.cards.make(box, ada), await things.cards.make(box, ada)]
    const mail = await things.emails_sent.make(box, ada)
    await limit(box, Object.fromEntries(planned.map((what) => [what, 0])))
    for (const { body } of made) expect((await box.call('GET', `/v1/cards/${body.id}`)).body['status']).toBe('active')
    expect(refused(await things.cards.make(box, ada))).toMatch(/may have 0 cards, and has 2/)
    expect((await subscription(box)).usage).toMatchObject({ cards: 2, identities: 1, emails_sent: 1 })
    // within the same month nothing is sent that was not counted before
    const moved = await box.call('PATCH', `/v1/identities/${ada}/emails/${mail.body.id}`, {
      send_at: '2026-11-28T00:00:00Z',
    })
    expect(moved.body['send_at']).toBe('2026-11-28T00:00:00.000Z')
    const { status } = await box.call('DELETE', `/v1/identities/${ada}`)
    expect(status).toBe(200)
    await box.settled()
    expect((await subscription(box)).usage).toMatchObject({ cards: 0, identities: 0, phone_numbers: 0 })
    await limit(box, {})
    expect(refused(await box.call('POST', '/v1/identities', {}))).toBeNull()
  })

  test('is asked of the operator’s mailbox by nobody: mail for postmaster comes in', async () => {
    const { box } = await home(limitsAsEnv({ identities: 1 }))
    expect(await deliver(box.smtp, { to: 'postmaster@pillarbox.test', raw: message({ Subject: 'Hi' }, 'x') })).toMatch(/^250/)
    expect(await usage(box, 'identities')).toBe(2)
  })
})

describe('what is gone is not counted', () => {
  test('keys that are revoked, expired, or bound to an identity that is gone', async () => {
    const clock = new HeldClock()
    const { box } = await home({}, clock)
    const bob = await another(box)
    const key = async (input: Record<string, unknown>): Promise<string> => (await box.call('POST', '/v1/api-keys', input)).body.id
    await key({ identity_id: bob })
    await key({ expires_at: '2026-11-20T11:00:00Z' })
    const third = await key({})
    expect(await usage(box, 'api_keys')).toBe(4)
    await box.call('DELETE', `/v1/api-keys/${third}`)
    expect(await usage(box, 'api_keys')).toBe(3)
    await box.call('DELETE', `/v1/identities/${bob}`)
    expect(await usage(box, 'api_keys')).toBe(2)
    clock.advance(3_600_000)
    expect(await usage(box, 'api_keys')).toBe(1)
  })

  test('whatever was an identity’s', async () => {
    const { box, ada } = await home({}, new HeldClock())
    const before = await subscription(box)
    const bob = await another(box)
    await box.call('POST', `/v1/identities/${bob}/phone`, {})
    await things.cards.make(box, bob)
    await things.totp_entries.make(box, bob)
    await box.call('POST', '/v1/agents', { identity_id: bob })
    const mail = await things.emails_sent.make(box, bob)
    expect((await subscription(box)).usage).toMatchObject({
      cards: 1,
      totp_entries: 1,
      agents: 1,
      phone_numbers: 2,
      emails_sent: 1,
    })
    expect(refused(mail)).toBeNull()
    await box.call('DELETE', `/v1/identities/${bob}`)
    await box.settled()
    expect(await subscription(box)).toEqual(before)
    expect(ada).not.toBe(bob)
  })
})

describe('a month', () => {
  test('begins again at 0, in UTC', async () => {
    const clock = new HeldClock(Date.UTC(2026, 11, 31, 23, 59, 59, 999))
    const { box, ada } = await home(limitsAsEnv({ emails_sent: 1, sms_sent: 1 }), clock)
    const send = (): Promise<Made> =>
      box.call('POST', `/v1/identities/${ada}/emails`, { to: 'ada@pillarbox.test', body: 'Hello' })
    const text = (): Promise<Made> => things.sms_sent.make(box, ada)
    expect([refused(await send()), refused(await text())]).toEqual([null, null])
    expect(refused(await send())).toMatch(/may send 1 e-mail in a month, and 1 is counted for 2026-12 \(UTC\)/)
    expect(refused(await text())).toMatch(/may send 1 text message in a month/)
    clock.advance(1)
    expect(await subscription(box)).toMatchObject({
      usage: { emails_sent: 0, sms_sent: 0 },
      current_period_start: '2027-01-01T00:00:00.000Z',
      current_period_end: '2027-02-01T00:00:00.000Z',
    })
    expect([refused(await send()), refused(await text())]).toEqual([null, null])
    expect((await subscription(box)).usage).toMatchObject({ emails_sent: 1, sms_sent: 1 })
  })

  test('counts what leaves in it: scheduled mail in its own, and in the other when it is put off', async () => {
    const clock = new HeldClock()
    const { box, ada } = await home(limitsAsEnv({ emails_sent: 1 }), clock)
    const send = (send_at?: string): Promise<Made> =>
      box.call('POST', `/v1/identities/${ada}/emails`, {
        to: 'ada@pillarbox.test',
        body: 'Hello',
        ...(send_at ? { send_at } : {}),
      })
    const [december, november] = ['2026-12-05T00:00:00Z', '2026-11-25T00:00:00Z']
    const later = await send(december)
    expect(refused(later)).toBeNull()
    expect(await usage(box, 'emails_sent')).toBe(0)
    expect(refused(await send(december))).toMatch(/2026-12/)
    expect(refused(await send(november))).toBeNull()
    const path = `/v1/identities/${ada}/emails/${later.body.id}`
    expect(refused(await box.call('PATCH', path, { send_at: november }))).toMatch(/2026-11/)
    expect((await box.call('GET', path)).body['send_at']).toBe('2026-12-05T00:00:00.000Z')
    await limit(box, { emails_sent: 2 })
    expect(refused(await box.call('PATCH', path, { send_at: november }))).toBeNull()
    expect(await usage(box, 'emails_sent')).toBe(2)
    // December is free again
    await limit(box, { emails_sent: 1 })
    expect(refused(await send(december))).toBeNull()
    // taken back once, however often it is asked for
    await box.call('POST', `${path}/cancel`)
    await box.call('POST', `${path}/cancel`)
    await box.call('DELETE', path)
    expect(await usage(box, 'emails_sent')).toBe(1)
  })
})
