import { expect, test } from 'vitest'
import { letter } from '../contract/estate.ts'
import { type Answer, appliance, type Appliance, deliver } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { person, signIn, withPassword } from '../support/people.ts'
import { says, WebhookSink } from '../support/webhook-sink.ts'

const near = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }

interface Key {
  id: string
  key: string
  rate_limit: number
  created_by: string | null
  rotated_by: string | null
}

const keyOf = async (box: Appliance, input: object = {}, key = box.key): Promise<Key> =>
  (await box.call<Key>('POST', '/v1/api-keys', input, { key })).body
const works = async (box: Appliance, key: string): Promise<boolean> =>
  (await box.call('GET', '/v1/api-keys', undefined, { key })).status === 200
const hook = async (box: Appliance, url: string, key = box.key): Promise<Record<string, unknown> & { id: string }> =>
  (await box.call('POST', '/v1/webhooks', { url, events: ['identity.created'] }, { key })).body as never
const shown = async (box: Appliance, id: string) => (await box.call('GET', `/v1/webhooks/${id}`)).body
const statusOf = async ({ url }: Record<string, unknown>): Promise<number> => (await fetch(url as string)).status
const run = (box: Appliance, name: string) => box.app.jobs.find((job) => job.name === name)!.run()

test('what a key made names it, and ends with it: its webhooks, its keys, and what those made', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const own = await hook(box, `${sink.url}/own`)
  const leaked = await keyOf(box)
  const child = await keyOf(box, {}, leaked.key)
  const grandchild = await keyOf(box, {}, child.key)
  const others = await keyOf(box)
  const heard = [await hook(box, `${sink.url}/leaked`, leaked.key), await hook(box, `${sink.url}/child`, child.key)]
  expect([child.created_by, grandchild.created_by]).toEqual([leaked.id, child.id])
  expect(heard.map(({ created_by }) => created_by)).toEqual([leaked.id, child.id])
  const { body: made } = await box.call('GET', `/v1/webhooks?created_by=${leaked.id}`)
  expect(made.data.map(({ id }) => id as string)).toEqual([heard[0]!.id])
  const { body: keys } = await box.call('GET', `/v1/api-keys?created_by=${leaked.id}`)
  expect(keys.data.map(({ id }) => id as string)).toEqual([child.id])

  const { body: told } = await box.call('DELETE', `/v1/api-keys/${leaked.id}`)
  expect(told).toEqual({
    id: leaked.id,
    deleted: true,
    ended: { api_keys: 2, webhooks: 2, jobs: 0, scheduled_emails: 0, holds: 0 },
  })
  for (const { key } of [leaked, child, grandchild]) expect(await works(box, key)).toBe(false)
  expect(await works(box, others.key)).toBe(true)

  await box.call('POST', '/v1/identities', {})
  await sink.until(1)
  for (const { id } of heard) {
    expect(await shown(box, id)).toMatchObject({ active: false, disabled_reason: 'key_ended' })
    expect((await box.call('GET', `/v1/webhooks/${id}/deliveries`)).body.data).toEqual([])
    expect((await box.call('POST', `/v1/webhooks/${id}/test`)).body.error).toMatchObject({ code: 'webhook_inactive' })
  }
  expect(sink.received.map(({ path }) => path)).toEqual(['/own'])
  expect(await shown(box, own.id)).toMatchObject({ active: true })
  // whoever may can have it go on, and it is theirs then
  const { body: again } = await box.call('PATCH', `/v1/webhooks/${heard[0]!.id}`, { active: true })
  expect(again).toMatchObject({ active: true, disabled_reason: null, expires_at: null, created_by: leaked.id })
})

test('what a key made stays when its owner says so', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const parting = await keyOf(box)
  const child = await keyOf(box, {}, parting.key)
  const kept = await hook(box, sink.url, parting.key)
  const { body: told } = await box.call('DELETE', `/v1/api-keys/${parting.id}?keep=true`)
  expect(told).toEqual({
    id: parting.id,
    deleted: true,
    ended: { api_keys: 0, webhooks: 0, jobs: 0, scheduled_emails: 0, holds: 0 },
  })
  expect([await works(box, parting.key), await works(box, child.key)]).toEqual([false, true])
  expect(await shown(box, kept.id)).toMatchObject({ active: true, created_by: parting.id })
  await box.call('POST', '/v1/identities', {})
  await sink.until(1)
  // and ends with what is above it, whenever that ends
  const bad = await box.call('DELETE', `/v1/api-keys/${child.id}?keep=perhaps`)
  expect([bad.status, bad.body.error['param']]).toEqual([400, 'keep'])
})

test('the webhook of a key that expires ends no later, also without anybody who looks', async () => {
  const clock = new HeldClock()
  const box = await appliance(near, clock)
  const sink = await WebhookSink.start()
  const expires_at = new Date(clock.now() + 60_000).toISOString()
  const brief = await keyOf(box, { expires_at })
  const made = await hook(box, `${sink.url}/brief`, brief.key)
  const events = ['identity.created', 'webhook.disabled']
  await box.call('POST', '/v1/webhooks', { url: `${sink.url}/own`, events })
  expect(made).toMatchObject({ expires_at, created_by: brief.id, active: true })
  await box.call('POST', '/v1/identities', {})
  await sink.until(2)
  clock.advance(60_000)
  expect(await shown(box, made.id)).toMatchObject({ active: false, disabled_at: expires_at, disabled_reason: 'key_ended' })
  await box.call('POST', '/v1/identities', {})
  await sink.until(3)
  expect(sink.received.map(({ path }) => path).toSorted()).toEqual(['/brief', '/own', '/own'])
  await run(box, 'end-webhooks')
  await run(box, 'end-webhooks')
  await box.call('POST', '/v1/identities', {})
  await sink.until(5)
  const told = sink.received.map(({ raw }) => JSON.parse(raw) as { event: string; data: Record<string, unknown> })
  const off = told.filter(({ event }) => event === 'webhook.disabled')
  expect(off.map(({ data }) => data)).toMatchObject([{ id: made.id, disabled_reason: 'key_ended', created_by: brief.id }])
  expect(await shown(box, made.id)).toMatchObject({ active: false, disabled_reason: 'key_ended' })
})

test('what waits for a webhook whose key ended is not sent', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  sink.behaviour = says(503)
  const leaked = await keyOf(box)
  const made = await hook(box, sink.url, leaked.key)
  await box.call('POST', '/v1/identities', {})
  await sink.until(1)
  await box.settled()
  expect((await box.call('GET', `/v1/webhooks/${made.id}/deliveries`)).body.data[0]).toMatchObject({
    status: 'pending',
    response_status: 503,
  })
  const [waiting] = (await box.call('GET', `/v1/webhooks/${made.id}/deliveries`)).body.data
  await box.call('DELETE', `/v1/api-keys/${leaked.id}`)
  const told = await box.call('POST', `/v1/webhooks/${made.id}/deliveries/${waiting.id}/redeliver`)
  expect(told.body.error).toMatchObject({ status: 409, code: 'webhook_inactive' })
  expect(sink.received).toHaveLength(1)
})

test('a key that expires bends no webhook that lasts longer, and learns no secret of one', async () => {
  const clock = new HeldClock()
  const box = await appliance(near, clock)
  const lasting = await hook(box, 'http://127.0.0.1:9/ours')
  const brief = await keyOf(box, { expires_at: new Date(clock.now() + 60_000).toISOString() })
  const as = { key: brief.key }
  for (const change of [{ url: 'http://127.0.0.1:9/theirs' }, { events: ['*'] }, { headers: { 'X-A': 'b' } }, { active: true }]) {
    const told = await box.call('PATCH', `/v1/webhooks/${lasting.id}`, change, as)
    expect([change, told.status, told.body.error?.['code']]).toEqual([change, 403, 'beyond_own'])
  }
  const rotated = await box.call('POST', `/v1/webhooks/${lasting.id}/secret/rotate`, {}, as)
  expect(rotated.body.error).toMatchObject({ status: 403, code: 'beyond_own' })
  expect((await box.call('PATCH', `/v1/webhooks/${lasting.id}`, { active: false }, as)).status).toBe(200)
})

test('a webhook that a key turned elsewhere, and a key that it gave a new secret, end with it too', async () => {
  const box = await appliance(near)
  const lasting = await hook(box, 'http://127.0.0.1:9/ours')
  const others = await keyOf(box)
  const leaked = await keyOf(box)
  const as = { key: leaked.key }
  const { body: turned } = await box.call('PATCH', `/v1/webhooks/${lasting.id}`, { url: 'http://127.0.0.1:9/theirs' }, as)
  expect(turned).toMatchObject({ created_by: expect.stringMatching(/^key_/), updated_by: leaked.id, expires_at: null })
  const { body: rotated } = await box.call<Key>('POST', `/v1/api-keys/${others.id}/rotate`, {}, as)
  expect(rotated.rotated_by).toBe(leaked.id)
  expect((await box.call('DELETE', `/v1/api-keys/${leaked.id}`)).body).toMatchObject({ ended: { api_keys: 1, webhooks: 1 } })
  expect(await works(box, rotated.key)).toBe(false)
  expect(await shown(box, lasting.id)).toMatchObject({ active: false })
})

test('the key that asks does not end with the one that made it', async () => {
  const box = await appliance()
  const maker = await keyOf(box)
  const heir = await keyOf(box, {}, maker.key)
  const its = await keyOf(box, {}, heir.key)
  const { body: told } = await box.call('DELETE', `/v1/api-keys/${maker.id}`, undefined, { key: heir.key })
  expect(told).toMatchObject({ ended: { api_keys: 0 } })
  expect([await works(box, heir.key), await works(box, its.key)]).toEqual([true, true])
})

test('the export of an ended key opens no more, and what a person made names their session', async () => {
  const box = await appliance()
  await withPassword(box)
  const page = await signIn(box)
  const { body: session } = await page.call('GET', '/v1/session')
  expect((await page.call('POST', '/v1/api-keys', {})).body).toMatchObject({ created_by: session['id'] })
  const { body: ada } = await page.call('POST', '/v1/identities', { name: 'Ada' })
  const leaked = await keyOf(box)
  const as = { key: leaked.key }
  const { body: begun } = await box.call('POST', `/v1/identities/${ada['id']}/export`, {}, as)
  expect(begun).toMatchObject({ created_by: leaked.id })
  const job = async () => (await box.call('GET', `/v1/jobs/${begun['id']}`)).body
  await box.settled()
  expect((await job())['status']).toBe('done')
  const url = (await job())['result'].url as string
  expect((await fetch(url)).status).toBe(200)
  expect((await box.call('DELETE', `/v1/api-keys/${leaked.id}`)).body).toMatchObject({ ended: { jobs: 1 } })
  await expect.poll(async () => (await fetch(url)).status).toBe(404)
})

test('a key that expires signs no URL and no token that outlives it', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const expires_at = new Date(clock.now() + 60_000).toISOString()
  const as = { key: (await keyOf(box, { expires_at })).key }
  const { body: token } = await box.call('POST', `/v1/identities/${ada['id']}/token`, {}, as)
  expect(token['expires_at']).toBe(expires_at)
  const { body: begun } = await box.call('POST', `/v1/identities/${ada['id']}/export`, {}, as)
  const job = async () => (await box.call('GET', `/v1/jobs/${begun['id']}`)).body
  await box.settled()
  expect((await job())['status']).toBe('done')
  expect((await job())['result'].expires_at).toBe(expires_at)
  clock.advance(60_000)
  expect((await fetch((await job())['result'].url as string)).status).toBe(403)
})

test('a URL that a key signed opens no more once the key is revoked', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada['email'] as string, raw: letter('Ada') })
  const { body: list } = await box.call('GET', `/v1/identities/${ada['id']}/emails`)
  const at = `/v1/identities/${ada['id']}/emails/${list.data[0].id}/attachments/0`
  const leaked = await keyOf(box)
  const { body: theirs } = await box.call('GET', at, undefined, { key: leaked.key })
  const { body: ours } = await box.call('GET', at)
  expect([await statusOf(theirs), await statusOf(ours)]).toEqual([200, 200])
  await box.call('DELETE', `/v1/api-keys/${leaked.id}`)
  expect([await statusOf(theirs), await statusOf(ours)]).toEqual([403, 200])
  const unsaid = new URL(theirs['url'] as string)
  unsaid.searchParams.delete('by')
  expect(await statusOf({ url: unsaid.href })).toBe(403)
})

test('keys that a limited key makes share its calls, whoever makes the most of them', async () => {
  const clock = new HeldClock()
  const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '600' }, clock)
  const limited = await keyOf(box, { rate_limit: 10 })
  const children = [await keyOf(box, {}, limited.key), await keyOf(box, {}, limited.key)]
  const grandchild = await keyOf(box, {}, children[0]!.key)
  const ask = (key: string): Promise<Answer> => box.call('GET', '/v1/identities', undefined, { key })
  clock.advance(60_000)
  const answers = []
  for (let n = 0; n < 12; n += 1) answers.push(await ask([...children, grandchild][n % 3]!.key))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(10)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(2)
  expect((await ask(limited.key)).status).toBe(429)
  expect((await ask(box.key)).status).toBe(200)
  // nor does the maker's end set them free
  await box.call('DELETE', `/v1/api-keys/${limited.id}?keep=true`)
  clock.advance(6_000)
  const after = [await ask(children[0]!.key), await ask(children[1]!.key), await ask(grandchild.key)]
  expect(after.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 429, 429])
})

test('keys make keys for so many generations, and no more', async () => {
  const box = await appliance()
  let { key } = await keyOf(box)
  const statuses = []
  for (let n = 0; n < 16; n += 1) {
    const told = await box.call('POST', '/v1/api-keys', {}, { key })
    statuses.push(told.status)
    key = (told.body['key'] as string | undefined) ?? key
  }
  expect(statuses.filter((status) => status === 201)).toHaveLength(14)
  expect((await box.call('POST', '/v1/api-keys', {}, { key })).body.error).toMatchObject({
    status: 403,
    code: 'too_many_generations',
  })
})

test('all keys and sessions of an account share its calls; another account has its own', async () => {
  const clock = new HeldClock()
  const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '600', PILLARBOX_HTTP__ACCOUNT_RATE_LIMIT: '20' }, clock)
  await box.app.accounts.add({ name: 'Grace', email: 'grace@example.com', password: person.password })
  const page = await signIn(box, { email: 'grace@example.com', password: person.password })
  const keys: string[] = []
  for (let n = 0; n < 4; n += 1) keys.push((await page.call('POST', '/v1/api-keys', { rate_limit: 0 })).body['key'] as string)
  clock.advance(60_000)
  const answers = []
  for (let n = 0; n < 25; n += 1) answers.push(await box.call('GET', '/v1/identities', undefined, { key: keys[n % 4]! }))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(20)
  expect(answers.at(-1)!.headers.get('ratelimit-policy')).toBe('"account";q=20;w=60')
  expect((await page.call('GET', '/v1/identities')).status).toBe(429)
  expect((await box.call('GET', '/v1/identities')).status).toBe(200)
})
