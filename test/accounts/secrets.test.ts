import { expect, test } from 'vitest'
import { letter } from '../contract/estate.ts'
import { appliance, type Appliance, deliver } from '../support/appliance.ts'
import { refusal } from '../support/handshake.ts'
import { HeldClock } from '../support/held-clock.ts'
import { live, token } from '../support/live.ts'

interface Key {
  id: string
  key: string
  expires_at: string | null
}

const near = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }
const minute = 60_000

const statuses = (...urls: string[]): Promise<number[]> => Promise.all(urls.map(async (url) => (await fetch(url)).status))

const keyOf = async (box: Appliance, input: object = {}, key = box.key): Promise<Key> =>
  (await box.call<Key>('POST', '/v1/api-keys', input, { key })).body
const rotate = async (box: Appliance, { id }: Key, grace_seconds = 0): Promise<Key> =>
  (await box.call<Key>('POST', `/v1/api-keys/${id}/rotate`, { grace_seconds })).body
const works = async (box: Appliance, key: string): Promise<boolean> =>
  (await box.call('GET', '/v1/api-keys', undefined, { key })).status === 200

test('a wait that a secret began gives nothing once another replaced it', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const wait = (key: string) => box.call('GET', `/v1/identities/${ada['id']}/wait?timeout=120`, undefined, { key })
  const [lost, graced, renewed] = [await keyOf(box), await keyOf(box), await keyOf(box)]
  const waits = [lost, graced].map(({ key }) => wait(key))
  const fresh = await rotate(box, renewed)
  waits.push(wait(fresh.key))
  await expect.poll(() => box.app.metrics.text()).toContain('pillarbox_waiting_calls 3\n')
  await rotate(box, lost)
  await rotate(box, graced, 60)
  await deliver(box.smtp, { to: ada['email'] as string, raw: letter('Ada') })
  const answers = await Promise.all(waits)
  expect(answers.map(({ status }) => status)).toEqual([401, 200, 200])
  expect(answers[0]!.body['error']).toMatchObject({ code: 'invalid_key' })
  expect(answers[1]!.body['item']).toMatchObject({ to: ada['email'] })
})

test('a former secret gives no key a new secret, its own least of all', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const [stolen, other] = [await keyOf(box), await keyOf(box)]
  const owners = await rotate(box, stolen, 60)
  for (const { id } of [stolen, other]) {
    const told = await box.call('POST', `/v1/api-keys/${id}/rotate`, {}, { key: stolen.key })
    expect(told.body['error']).toMatchObject({
      status: 403,
      code: 'former_secret',
      message: expect.stringMatching(/Use the new secret/),
    })
  }
  expect([await works(box, owners.key), await works(box, stolen.key), await works(box, other.key)]).toEqual([true, true, true])
  clock.advance(minute)
  expect([await works(box, owners.key), await works(box, stolen.key)]).toEqual([true, false])
  // the new one gives its key another
  expect((await box.call('POST', `/v1/api-keys/${stolen.id}/rotate`, {}, { key: owners.key })).status).toBe(200)
})

test('a former secret revokes no key, nor does a key that it made but itself and its own', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const maker = await keyOf(box)
  const stolen = await keyOf(box, {}, maker.key)
  await rotate(box, stolen, 60)
  const child = await keyOf(box, {}, stolen.key)
  const grandchild = await keyOf(box, {}, child.key)
  const revoke = async ({ id }: Key, { key }: Key) => {
    const { status, body } = await box.call<{ error?: { code: string } }>('DELETE', `/v1/api-keys/${id}`, undefined, { key })
    return body.error?.code ?? status
  }
  for (const key of [stolen, child, grandchild]) {
    expect([await revoke(stolen, key), await revoke(maker, key)]).toEqual(['former_secret', 'former_secret'])
  }
  // also where that secret works no more
  await rotate(box, stolen)
  expect(await revoke(maker, child)).toBe('former_secret')
  expect(await works(box, maker.key)).toBe(true)
  expect([await revoke(grandchild, child), await revoke(child, child)]).toEqual([200, 200])
  // a brief key of a key that has no former secret revokes as ever
  const brief = await keyOf(box, { expires_at: new Date(clock.now() + minute).toISOString() }, maker.key)
  expect(await revoke(stolen, brief)).toBe(200)
})

test('a former secret is not told what the new one made, and is told again what it made itself', async () => {
  const box = await appliance(near)
  const stolen = await keyOf(box)
  const repeated = async (path: string, body: object, key: string, name: string) => {
    const told = await box.call<Record<string, unknown>>('POST', path, body, { key, headers: { 'Idempotency-Key': name } })
    return { ...told.body, again: told.headers.get('idempotency-replayed') } as Record<string, unknown>
  }
  const rotating = [`/v1/api-keys/${stolen.id}/rotate`, { grace_seconds: 60 }, stolen.key, 'rotate'] as const
  const owners = await repeated(...rotating)
  for (const [path, body, secret] of [
    ['/v1/api-keys', { label: 'worker' }, 'key'],
    ['/v1/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] }, 'secret'],
  ] as const) {
    const first = await repeated(path, body, owners['key'] as string, 'deploy')
    expect(await repeated(path, body, owners['key'] as string, 'deploy')).toEqual({ ...first, again: 'true' })
    const theirs = await repeated(path, body, stolen.key, 'deploy')
    expect([theirs['again'], theirs[secret]]).toEqual([null, expect.any(String)])
    expect(theirs[secret]).not.toBe(first[secret])
  }
  expect(await repeated(...rotating)).toEqual({ ...owners, again: 'true' })
})

test('what a former secret makes ends with it', async () => {
  const clock = new HeldClock()
  const box = await appliance(near, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const hear = { url: 'http://127.0.0.1:9/theirs', events: ['identity.created'] }
  const { body: lasting } = await box.call('POST', '/v1/webhooks', hear)
  const stolen = await keyOf(box)
  const owners = await rotate(box, stolen, 60)
  const end = new Date(clock.now() + minute).toISOString()
  const as = { key: stolen.key }
  const made = await keyOf(box, {}, stolen.key)
  const { body: hook } = await box.call('POST', '/v1/webhooks', hear, as)
  const { body: proof } = await box.call('POST', `/v1/identities/${ada['id']}/token`, {}, as)
  expect([made.expires_at, hook['expires_at'], proof['expires_at']]).toEqual([end, end, end])
  const beyond = new Date(clock.now() + 2 * minute).toISOString()
  for (const [method, path, body] of [
    ['POST', '/v1/api-keys', { expires_at: beyond }],
    ['PATCH', `/v1/webhooks/${lasting['id']}`, { url: 'http://127.0.0.1:9/elsewhere' }],
    ['POST', `/v1/webhooks/${lasting['id']}/secret/rotate`, {}],
    // nor what it made gives its key another secret
    ['POST', `/v1/api-keys/${stolen.id}/rotate`, {}],
  ] as const) {
    const key = path.includes(stolen.id) ? made.key : stolen.key
    expect((await box.call(method, path, body, { key })).body['error']).toMatchObject({ status: 403, code: 'beyond_own' })
  }
  clock.advance(minute)
  expect([await works(box, made.key), await works(box, owners.key)]).toEqual([false, true])
  const { body: after } = await box.call('GET', `/v1/webhooks/${hook['id']}`)
  expect(after).toMatchObject({ active: false, disabled_reason: 'key_ended' })
  // what the new secret makes lasts
  expect((await keyOf(box, {}, owners.key)).expires_at).toBeNull()
})

test('a URL that a secret signed opens no more once another replaced it', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada['email'] as string, raw: letter('Ada') })
  const { body: list } = await box.call('GET', `/v1/identities/${ada['id']}/emails`)
  const at = `/v1/identities/${ada['id']}/emails/${list.data[0].id}/attachments/0`
  const sign = async (key: string): Promise<string> => (await box.call('GET', at, undefined, { key })).body['url'] as string
  const key = await keyOf(box)
  const first = await sign(key.key)
  const second = await rotate(box, key, 60)
  const fresh = await sign(second.key)
  expect(await statuses(first, fresh)).toEqual([200, 200])
  clock.advance(minute)
  expect(await statuses(first, fresh)).toEqual([403, 200])
  // and a further rotation brings nothing back
  await rotate(box, key, 60)
  expect(await statuses(first, fresh)).toEqual([403, 200])
})

test('so does a token for live events, and that of the new secret goes on', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const key = await keyOf(box)
  const first = await token(box, { expires_in: 3600 }, key.key)
  const second = await rotate(box, key, 60)
  const fresh = await token(box, { expires_in: 3600 }, second.key)
  clock.advance(minute)
  await live(`${fresh.url}?token=${fresh.token}`)
  await rotate(box, key, 60)
  await live(`${fresh.url}?token=${fresh.token}`)
  expect((await refusal(`${first.url}?token=${first.token}`)).status).toBe(401)
})
