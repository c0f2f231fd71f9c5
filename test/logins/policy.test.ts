import { describe, expect, test } from 'vitest'
import { minute } from '../../src/core/clock.ts'
import { HeldReveals } from '../../src/policy/held-reveals.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { signIn, withPassword } from '../support/people.ts'

type Any = ReturnType<typeof JSON.parse>

interface World {
  box: Appliance
  clock: HeldClock
  ada: string
  /** A key with every scope but `holds:decide`, and another one. */
  agent: string
  other: string
  store: (more?: object, identity?: string) => Promise<string>
  reveal: (id: string, input?: object, key?: string) => Promise<Any>
}

async function watched(policy: object): Promise<World> {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const { body } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const key = async (): Promise<string> => (await box.call('POST', '/v1/api-keys', { label: 'agent' })).body.key as string
  const [agent, other] = [await key(), await key()]
  expect((await box.call('PATCH', '/v1/policy', policy)).status).toBe(200)
  const store = async (more: object = {}, identity = body.id as string): Promise<string> => {
    const login = { label: 'GitHub', url: 'https://github.com/', password: 'correct horse', ...more }
    return (await box.call('POST', `/v1/identities/${identity}/logins`, login)).body.id as string
  }
  const reveal = (id: string, input: object = { purpose: 'to open an issue' }, as = agent): Promise<Any> =>
    box.call('POST', `/v1/logins/${id}/reveal`, input, { key: as })
  return { box, clock, ada: body.id, agent, other, store, reveal }
}

/** Decides the one open hold. */
async function decide({ box }: World, how: 'approve' | 'reject'): Promise<Any> {
  const { body } = await box.call('GET', '/v1/holds')
  expect(body.data).toHaveLength(1)
  const { body: decided } = await box.call('POST', `/v1/holds/${body.data[0].id}/${how}`, {})
  return decided
}

describe('where a policy holds everything', () => {
  test('a reveal waits for a person, who sees what it is, and succeeds once', async () => {
    const world = await watched({ preset: 'all' })
    const { box, ada, store, reveal } = world
    const id = await store()
    const first = await reveal(id)
    expect([first.status, first.body.error.code]).toEqual([409, 'held'])
    expect((await reveal(id)).body.error.code).toBe('held')
    const { body: open } = await box.call('GET', '/v1/holds')
    expect(open.data).toMatchObject([{ kind: 'login', about: id, identity_id: ada, reasons: [{ level: 'account', rule: null }] }])
    const { body: hold } = await box.call('GET', `/v1/holds/${open.data[0].id}`)
    expect(hold.login).toMatchObject({ id, label: 'GitHub', host: 'github.com', purpose: 'to open an issue', used_at: null })
    expect(JSON.stringify(hold)).not.toContain('correct horse')
    expect((await decide(world, 'approve')).status).toBe('approved')
    // not for another key
    expect((await reveal(id, {}, world.other)).body.error.code).toBe('held')
    expect((await reveal(id)).body).toMatchObject({ password: 'correct horse' })
    expect((await reveal(id)).body.error.code).toBe('held')
    const { body: told } = await box.call('GET', `/v1/identities/${ada}/events?limit=200`)
    const types = told.data.map(({ type }: Any) => type).filter((type: string) => type.startsWith('login.'))
    expect(types).toEqual(['login.held', 'login.revealed', 'login.held', 'login.approved', 'login.held', 'login.created'])
    const { body: audit } = await box.call('GET', '/v1/audit?action=login.revealed')
    expect(audit.data).toHaveLength(1)
  })

  test('an approval ends after an hour, and a rejection reveals nothing', async () => {
    const world = await watched({ preset: 'all' })
    const id = await world.store()
    await world.reveal(id)
    await decide(world, 'approve')
    world.clock.advance(61 * minute)
    expect((await world.reveal(id)).body.error.code).toBe('held')
    expect((await decide(world, 'reject')).status).toBe('rejected')
    expect((await world.reveal(id)).body.error.code).toBe('held')
  })

  test('an approval is of what was looked at, and a deleted login takes its hold along', async () => {
    const world = await watched({ preset: 'all' })
    const { box, store, reveal } = world
    const id = await store()
    await reveal(id)
    const { body: open } = await box.call('GET', '/v1/holds')
    const approve = `/v1/holds/${open.data[0].id}/approve`
    await box.call('PATCH', `/v1/logins/${id}`, { label: 'A harmless place' })
    expect((await box.call('POST', approve, {})).body.error.code).toBe('hold_changed')
    await box.call('DELETE', `/v1/logins/${id}`)
    const { body: hold } = await box.call('GET', `/v1/holds/${open.data[0].id}`)
    expect(hold).toMatchObject({ status: 'cancelled', login: null })
  })

  test('a login that was changed after it was held or approved must be looked at again', async () => {
    const world = await watched({ preset: 'all' })
    const { box, clock, store, reveal } = world
    const id = await store()
    const change = async (password: string): Promise<void> => {
      clock.advance(1)
      expect((await box.call('PATCH', `/v1/logins/${id}`, { password })).status).toBe(200)
    }
    await reveal(id)
    const { body: open } = await box.call('GET', '/v1/holds')
    const first = `/v1/holds/${open.data[0].id}`
    await change('another secret')
    const refused = await box.call('POST', `${first}/approve`, {})
    expect([refused.status, refused.body.error.code]).toEqual([409, 'hold_changed'])
    // its sender asks anew
    await reveal(id)
    await box.call('POST', `${first}/reject`, {})
    expect((await decide(world, 'approve')).status).toBe('approved')
    await change('a third secret')
    expect((await reveal(id)).body.error.code).toBe('held')
    await decide(world, 'approve')
    expect((await reveal(id)).body).toMatchObject({ password: 'a third secret' })
  })

  test('an approval is of the purpose that a person saw', async () => {
    const world = await watched({ preset: 'all' })
    const id = await world.store()
    await world.reveal(id)
    await decide(world, 'approve')
    for (const other of [{}, { purpose: 'to delete the repository' }]) {
      expect((await world.reveal(id, other)).body.error.code).toBe('held')
      await decide(world, 'reject')
    }
    expect((await world.reveal(id)).body).toMatchObject({ password: 'correct horse' })
  })

  test('a person reveals, as they look themselves', async () => {
    const { box, store } = await watched({ preset: 'all' })
    const id = await store()
    await withPassword(box)
    const { call } = await signIn(box)
    expect((await call('POST', `/v1/logins/${id}/reveal`, {})).body).toMatchObject({ password: 'correct horse' })
  })
})

describe('where a policy holds what is new', () => {
  test('the first reveal of a host is held, and once approved the host is known to this identity', async () => {
    const world = await watched({ preset: 'known' })
    const { box, store, reveal } = world
    const [first, second] = [await store(), await store({ label: 'Second' })]
    const elsewhere = await store({ url: 'https://gist.github.com/' })
    expect((await reveal(first)).body.error.code).toBe('held')
    await decide(world, 'approve')
    for (const id of [first, first, second]) expect((await reveal(id, {}, world.other)).status).toBe(200)
    expect((await reveal(elsewhere)).body.error.code).toBe('held')
    const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
    expect((await reveal(await store({}, bob.id as string))).body.error.code).toBe('held')
  })

  test('a login without a URL is a place of its own, and an address of its name is not', async () => {
    const world = await watched({ preset: 'known' })
    const [first, second] = [await world.store({ url: null }), await world.store({ url: null })]
    await world.reveal(first)
    await decide(world, 'approve')
    expect((await world.reveal(first)).status).toBe(200)
    expect((await world.reveal(second)).body.error.code).toBe('held')
  })

  test('a key that names a known host as that of another login does not get its secrets', async () => {
    const world = await watched({ preset: 'known' })
    const { box, store, reveal } = world
    const known = await store()
    await reveal(known)
    await decide(world, 'approve')
    const bank = await store({ label: 'Bank', url: 'https://bank.example/' })
    expect((await reveal(bank)).body.error.code).toBe('held')
    const moved = await box.call('PATCH', `/v1/logins/${bank}`, { url: 'https://github.com/' }, { key: world.agent })
    expect(moved.status).toBe(200)
    expect((await reveal(bank)).body.error.code).toBe('held')
    // another path of the same host is the same place
    await box.call('PATCH', `/v1/logins/${known}`, { url: 'https://github.com/login' }, { key: world.agent })
    expect((await reveal(known)).status).toBe(200)
  })

  test('places count as no new recipients', async () => {
    const world = await watched({ preset: 'known', rules: [{ when: { new_per_day_over: 1 }, action: 'refuse' }] })
    await world.reveal(await world.store())
    await decide(world, 'approve')
    await world.reveal(await world.store({ url: 'https://b.example/' }))
    await decide(world, 'approve')
    await world.box.call('POST', `/v1/identities/${world.ada}/phone`)
    const text = { to: '+15550100123', body: 'Hi.' }
    const { body } = await world.box.call('POST', `/v1/identities/${world.ada}/sms`, text, { key: world.agent })
    expect(body.status).toBe('held')
  })
})

describe('a rule for logins', () => {
  test('holds or refuses them, and those for other channels do not', async () => {
    const world = await watched({ preset: 'open', rules: [{ when: { channel: ['login'] }, action: 'hold' }] })
    const id = await world.store()
    expect((await world.reveal(id)).body.error.code).toBe('held')
    await world.box.call('PATCH', '/v1/policy', { rules: [{ when: { channel: ['login'] }, action: 'refuse' }] })
    const refused = await world.reveal(id)
    expect([refused.status, refused.body.error.code]).toEqual([403, 'policy_refused'])
    await world.box.call('PATCH', '/v1/policy', { rules: [{ when: { channel: ['card'] }, action: 'refuse' }] })
    expect((await world.reveal(id)).status).toBe(200)
    const bad = await world.box.call('PATCH', '/v1/policy', {
      rules: [{ when: { channel: ['login'], to: ['new'] }, action: 'hold' }],
    })
    expect(bad.body.error).toMatchObject({ status: 400, param: 'rules.0.when.to' })
  })
})

test('what is changed while it is being approved is not approved', async () => {
  const deps = { holds: { serve: () => undefined }, database: {} }
  const shown = { id: 'login_1', account_id: 'acct_1', identity_id: 'ident_1' }
  const approved: unknown[] = []
  const reveals = new HeldReveals(
    deps as never,
    {
      find: () => Promise.resolve(shown),
      digest: () => 'of the changed',
      approved: () => void approved.push(shown),
    } as never,
  )
  const stored = { about: 'login_1', sha256: 'of what was looked at' }
  await expect(reveals.release({} as never, stored as never, {} as never)).rejects.toMatchObject({ code: 'hold_changed' })
  expect(approved).toEqual([])
})
