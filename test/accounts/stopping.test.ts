import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { hour, iso } from '../../src/core/clock.ts'
import { letter } from '../contract/estate.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { HeldClock } from '../support/held-clock.ts'
import { type Live, live } from '../support/live.ts'
import { type Browser, person, signIn, withPassword } from '../support/people.ts'
import { type Guest, MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { pillarbox } from '../support/pillarbox.ts'
import { greeted, loggedIn, office, plain, submit } from '../support/submission.ts'
import { WebhookSink } from '../support/webhook-sink.ts'

const env = {
  PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0',
  PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
  PILLARBOX_SMS__PROVIDER: 'loopback',
}

const code = ({ status, body }: { status: number; body: { error?: { code?: string } } }): unknown => [status, body.error?.code]
const stoppedCode = [403, 'account_stopped']

/** A box with two identities, whose owner is signed in. */
async function owned(clock?: HeldClock): Promise<{ box: Appliance; owner: Browser; ada: Any; bob: Any }> {
  const box = await appliance(env, clock)
  await withPassword(box)
  const owner = await signIn(box)
  const made = async (name: string) => (await box.call('POST', '/v1/identities', { name })).body as Any
  return { box, owner, ada: await made('Ada'), bob: await made('Bob') }
}

type Any = ReturnType<typeof JSON.parse>

test('the keys of a stopped account may do nothing but ask what they are; people, other accounts and incoming mail go on', async () => {
  const { box, owner, ada } = await owned()
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: ada.id })
  const other = await box.app.accounts.add({ name: 'Other', email: 'eve@example.com', password: person.password })
  const eve = await signIn(box, { email: 'eve@example.com', password: person.password })
  const { body: foreign } = await eve.call('POST', '/v1/api-keys', {})
  // known from now on
  for (const key of [box.key, bound.key]) expect((await box.call('GET', '/v1/identities', undefined, { key })).status).toBe(200)
  const stopped = await owner.call('POST', '/v1/account/stop', {})
  expect([stopped.status, stopped.body]).toMatchObject([200, { stopped_at: expect.any(String) }])
  const tried = async (key: string): Promise<unknown[]> => [
    code(await box.call('GET', '/v1/identities', undefined, { key })),
    code(await box.call('POST', `/v1/identities/${ada.id}/emails`, { to: ada.email, body_text: 'x' }, { key })),
    code(await box.call('POST', '/v1/account/resume', {}, { key })),
    code(await box.call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { key })),
    (await box.call('GET', '/v1/whoami', undefined, { key })).status,
  ]
  for (const key of [box.key, bound.key]) {
    expect(await tried(key)).toEqual([stoppedCode, stoppedCode, stoppedCode, stoppedCode, 200])
  }
  const said = await box.call('GET', '/v1/identities')
  expect(said.body.error['message']).toContain('Ask an owner of the account')
  expect((await box.call('GET', '/v1/identities', undefined, { key: foreign.key })).status).toBe(200)
  expect((await eve.call('GET', '/v1/account')).body).toMatchObject({ id: other.id, stopped_at: null })
  await deliver(box.smtp, { to: ada.email, raw: message({ To: ada.email, Subject: 'Still there' }, 'x') })
  expect((await owner.call('GET', `/v1/identities/${ada.id}/emails`)).body.data).toMatchObject([{ subject: 'Still there' }])
  await box.restart()
  expect(code(await box.call('GET', '/v1/identities'))).toEqual(stoppedCode)
  const resumed = await owner.call('POST', '/v1/account/resume', {})
  expect([resumed.status, resumed.body]).toMatchObject([200, { stopped_at: null }])
  expect((await box.call('GET', '/v1/identities')).status).toBe(200)
  const at = (await owner.call('GET', '/v1/audit?limit=100')).body.data.map(({ action }) => action as string)
  expect(at.filter((action) => action.startsWith('account.'))).toEqual(['account.resumed', 'account.stopped'])
  const events = (await owner.call('GET', '/v1/events?types=account.stopped,account.resumed')).body.data
  const { id: by } = (await owner.call('GET', '/v1/session')).body.person
  expect(events).toMatchObject([
    { event: 'account.resumed', data: { by, stopped_at: null } },
    { event: 'account.stopped', data: { by, stopped_at: stopped.body['stopped_at'] } },
  ])
  expect(box.logged.filter((line) => /account (stopped|resumed)/.test(line))).toHaveLength(2)
})

test('who may stop an account, and who may resume it', async () => {
  const { box, owner, ada } = await owned()
  const key = async (input: object) => (await owner.call('POST', '/v1/api-keys', input)).body.key as string
  const stop = (with_: string) => box.call('POST', '/v1/account/stop', {}, { key: with_ })
  const isStopped = async () => (await owner.call('GET', '/v1/account')).body['stopped_at'] !== null
  expect(code(await stop(await key({ scopes: ['account:write'] })))).toEqual([403, 'insufficient_scope'])
  expect(code(await stop(await key({ scopes: ['holds:decide'], identity_id: ada.id })))).toEqual([403, 'bound_key'])
  expect(code(await owner.call('POST', '/v1/account/resume', {}))).toEqual([200, undefined])
  expect(await isStopped()).toBe(false)
  const decider = await key({ scopes: ['holds:decide'] })
  expect((await stop(decider)).status).toBe(200)
  expect(code(await stop(decider))).toEqual(stoppedCode)
  const since = (await owner.call('GET', '/v1/account')).body['stopped_at'] as string
  // once more changes nothing
  expect((await owner.call('POST', '/v1/account/stop', {})).body['stopped_at']).toBe(since)
  expect((await pillarbox(box, ['account', 'list'])).output).toContain(`stopped since ${since}`)
  expect((await pillarbox(box, ['account', 'resume'])).output).toContain('is resumed.')
  expect(await isStopped()).toBe(false)
  expect(code(await box.call('POST', '/v1/account/resume', {}))).toEqual([403, 'session_required'])
  expect((await pillarbox(box, ['account', 'stop'])).output).toContain('is stopped: its keys do nothing, and nothing is sent.')
  expect(await isStopped()).toBe(true)
})

test('e-mails and text messages, queued or scheduled, wait while the account is stopped, and leave when it is resumed', async () => {
  const clock = new HeldClock()
  const { box, owner, ada, bob } = await owned(clock)
  const send = async (subject: string, more: object = {}): Promise<string> =>
    (await owner.call('POST', `/v1/identities/${ada.id}/emails`, { to: bob.email, subject, body_text: 'x', ...more })).body.id
  const status = async (id: string) => (await owner.call('GET', `/v1/identities/${ada.id}/emails/${id}`)).body
  const scheduled = await send('scheduled', { send_at: iso(clock.now() + hour) })
  await owner.call('POST', `/v1/identities/${ada.id}/phone`, {})
  const { body: there } = await owner.call('POST', `/v1/identities/${bob.id}/phone`, {})
  await owner.call('POST', '/v1/account/stop', {})
  const queued = await send('queued')
  const { body: text } = await owner.call('POST', `/v1/identities/${ada.id}/sms`, { to: there.phone_number, body: 'Hello' })
  const sms = async () => (await owner.call('GET', `/v1/identities/${ada.id}/sms/${text.id}`)).body.status as string
  // longer than any schedule
  for (let days = 0; days < 8; days += 1) {
    clock.advance(24 * hour)
    await box.settled()
    // the session is used
    await status(queued)
  }
  expect(await status(queued)).toMatchObject({ status: 'queued', deliveries: [{ attempts: 0 }] })
  expect(await status(scheduled)).toMatchObject({ status: 'scheduled' })
  expect(await sms()).toBe('queued')
  await owner.call('POST', '/v1/account/resume', {})
  await box.settled()
  expect([(await status(queued)).status, (await status(scheduled)).status, await sms()]).toEqual([
    'delivered',
    'delivered',
    expect.stringMatching(/sent|delivered/),
  ])
})

test('a server that was connected to before the stop, and greets after it, is given nothing; the message leaves later', async () => {
  const sink = await MailSink.start()
  const clock = new HeldClock()
  const { box, ada, send } = await sendingBox(sink.port, env, { clock })
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  await withPassword(box)
  const owner = await signIn(box)
  const delivery = async (id: string) =>
    (await owner.call('GET', `/v1/identities/${ada}/emails/${id}`)).body['deliveries'][0] as Record<string, unknown>
  let guest: Guest | undefined
  sink.script = (line, connected) => {
    if (line !== '<greeting>') return undefined
    guest = connected
    return null
  }
  const id = await send('bob@far.test')
  await expect.poll(() => guest).toBeDefined()
  await owner.call('POST', '/v1/account/stop', {})
  sink.script = undefined
  guest!.write('220 mx.far.test ESMTP\r\n')
  await expect.poll(() => delivery(id)).toMatchObject({ status: 'deferred', response: expect.stringContaining('account') })
  expect(sink.commands.filter((line) => /^(MAIL|DATA)/.test(line))).toEqual([])
  await owner.call('POST', '/v1/account/resume', {})
  clock.advance(hour)
  await box.settled()
  await expect.poll(() => delivery(id)).toMatchObject({ status: 'delivered' })
  expect(sink.messages).toHaveLength(1)
})

test('webhooks of a stopped account wait, without an attempt, and then hear all of it', async () => {
  const clock = new HeldClock()
  const { box, owner } = await owned(clock)
  const sink = await WebhookSink.start()
  const { body: webhook } = await owner.call('POST', '/v1/webhooks', { url: sink.url, events: ['identity.created'] })
  await owner.call('POST', '/v1/account/stop', {})
  await owner.call('POST', '/v1/identities', { name: 'Carl' })
  for (let days = 0; days < 6; days += 1) {
    clock.advance(24 * hour)
    await box.settled()
  }
  expect(sink.received).toHaveLength(0)
  await owner.call('POST', '/v1/account/resume', {})
  await box.settled()
  expect(sink.received.map(({ body }) => body.event)).toEqual(['identity.created'])
  expect((await owner.call('GET', `/v1/webhooks/${webhook.id}`)).body).toMatchObject({ active: true })
})

test('a reveal of a card that was approved is refused while the account is stopped', async () => {
  const { box, owner, ada } = await owned()
  await owner.call('PATCH', '/v1/policy', { preset: 'known' })
  const { body: made } = await owner.call('POST', `/v1/identities/${ada.id}/cards`, card({ budget_cents: 1000 }))
  const reveal = () => box.call('POST', `/v1/cards/${made.id}/reveal`, { amount_cents: 10 })
  expect(code(await reveal())).toEqual([409, 'held'])
  const { body: holds } = await owner.call('GET', '/v1/holds')
  expect((await owner.call('POST', `/v1/holds/${holds.data[0].id}/approve`, {})).status).toBe(200)
  await owner.call('POST', '/v1/account/stop', {})
  expect(code(await reveal())).toEqual(stoppedCode)
  await owner.call('POST', '/v1/account/resume', {})
  expect((await reveal()).status).toBe(200)
})

async function socketOf(call: Browser['call']): Promise<Live> {
  const { body } = await call('POST', '/v1/realtime/token', {})
  const socket = await live(`${body['url']}?token=${body['token']}`)
  socket.say({ type: 'subscribe', channel: 'agent_events' })
  await socket.until('subscribed')
  return socket
}

test('calls that wait, WebSockets and URLs of keys end when their account is stopped; those of a person stay', async () => {
  const { box, owner, ada, bob } = await owned()
  await deliver(box.smtp, { to: bob.email, raw: letter('Bob') })
  const { body: mails } = await box.call('GET', `/v1/identities/${bob.id}/emails`)
  const attachment = `/v1/identities/${bob.id}/emails/${mails.data[0].id}/attachments/0`
  const url = (await box.call('GET', attachment)).body['url'] as string
  const opened = async () => (await fetch(url)).status
  expect(await opened()).toBe(200)
  const [theirs, own] = [await socketOf(box.call), await socketOf(owner.call)]
  const began = performance.now()
  const waits = [
    box.call('GET', `/v1/identities/${ada.id}/wait?timeout=25`),
    box.call('GET', '/v1/events?wait=25&types=identity.created'),
  ]
  const kept = owner.call('GET', '/v1/events?wait=25&types=identity.created')
  while (!(await box.app.metrics.text()).includes('pillarbox_waiting_calls 3')) await sleep(10)
  await owner.call('POST', '/v1/account/stop', {})
  for (const wait of waits) expect(code(await wait)).toEqual(stoppedCode)
  expect((await theirs.closed).code).toBe(4401)
  expect(await opened()).toBe(403)
  await owner.call('POST', '/v1/identities', { name: 'Carl' })
  expect((await kept).body.data).toHaveLength(1)
  await own.until('event')
  expect(performance.now() - began).toBeLessThan(20_000)
})

test('submission by a key ends when its account is stopped', async () => {
  const here = await office(env)
  const { box } = here
  await withPassword(box)
  const owner = await signIn(box)
  const client = await loggedIn(here)
  const raw = 'From: ada@pillarbox.test\r\nSubject: x\r\n\r\nx\r\n'
  expect(await submit(client, { to: ['ada@pillarbox.test'], raw })).toMatch(/^250/)
  await owner.call('POST', '/v1/account/stop', {})
  expect(await submit(client, { to: ['ada@pillarbox.test'], raw })).toMatch(/^421/)
  const fresh = await greeted(here.port('tls'), 'tls')
  expect(await fresh.say(plain('ada@pillarbox.test', box.key))).toMatch(/^535/)
  fresh.destroy()
})

test('calls of the keys of a stopped account take none of the calls of its people', async () => {
  const box = await appliance({ ...env, PILLARBOX_HTTP__ACCOUNT_RATE_LIMIT: '20' })
  await withPassword(box)
  const owner = await signIn(box)
  expect((await owner.call('POST', '/v1/account/stop', {})).status).toBe(200)
  for (let calls = 0; calls < 30; calls += 1) expect(code(await box.call('GET', '/v1/identities'))).toEqual(stoppedCode)
  expect((await owner.call('POST', '/v1/account/resume', {})).status).toBe(200)
})
