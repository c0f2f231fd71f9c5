import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { welcome } from '../../src/commands/serve.ts'
import { loadConfig } from '../../src/config.ts'
import { pillarbox } from '../ops/backup/command.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { MailSink } from '../support/mail-sink.ts'
import { verifiedDomain } from '../support/verified-domain.ts'

const hello = { subject: 'Hello', body_text: 'Hello there.' }

function relay(port: number): Record<string, string> {
  return {
    PILLARBOX_OUTBOUND__MODE: 'relay',
    PILLARBOX_OUTBOUND__RELAY__HOST: '127.0.0.1',
    PILLARBOX_OUTBOUND__RELAY__PORT: String(port),
    PILLARBOX_OUTBOUND__RELAY__TLS: 'none',
  }
}

const permitted = { PILLARBOX_OUTBOUND__UNVERIFIED_DOMAINS: 'relay' }

const refused = { PILLARBOX_OUTBOUND__UNVERIFIED_DOMAINS: 'refuse' }

async function ada(box: Appliance): Promise<string> {
  return `/v1/identities/${(await box.call('POST', '/v1/identities', { name: 'Ada' })).body['id']}`
}

test('mail of a box that is not verified leaves by its relay where the operator allows it, signed, with its replies and forwards', async () => {
  const sink = await MailSink.start()
  const box = await appliance({ ...relay(sink.port), ...permitted })
  const at = await ada(box)
  expect((await box.call('GET', at)).body).toMatchObject({ can_send_outside: true, cannot_send_outside_reason: null })
  const sent = await box.call('POST', `${at}/emails`, { to: 'bob@far.test', ...hello })
  expect([sent.status, sent.body.error]).toEqual([201, undefined])
  const forwarded = await box.call('POST', `${at}/emails/${sent.body['id']}/forward`, { to: 'eve@near.test' })
  expect(forwarded.status).toBe(201)
  await expect.poll(() => sink.messages.length, { timeout: 60_000 }).toBe(2)
  await box.settled()
  const { body } = await box.call('GET', `${at}/emails/${sent.body['id']}`)
  expect(body['deliveries']).toMatchObject([{ recipient: 'bob@far.test', status: 'sent' }])
  const raw = sink.messages.map((message) => JSON.stringify(message)).join('\n')
  expect(raw).toContain('DKIM-Signature: ')
  expect(raw).toContain('d=pillarbox.test')
})

test('without that permission a relay takes nothing of it, and the refusal says that the operator can give it', async () => {
  const sink = await MailSink.start()
  const box = await appliance(relay(sink.port))
  const at = await ada(box)
  const { error } = (await box.call('POST', `${at}/emails`, { to: 'bob@far.test', ...hello })).body
  expect(error).toMatchObject({ status: 409, code: 'domain_not_verified' })
  expect(error['message']).toMatch(/Ask whoever runs this box.*outbound\.unverified_domains: relay\.$/)
  const scheduled = { to: 'bob@far.test', ...hello, send_at: new Date(Date.now() + 3_600_000).toISOString() }
  expect((await box.call('POST', `${at}/emails`, scheduled)).body.error['code']).toBe('domain_not_verified')
  expect(sink.connections).toBe(0)
})

test('with relays for some domains only, it is sent to these and to no others', async () => {
  const sink = await MailSink.start()
  const relays = [{ domains: ['near.test'], host: '127.0.0.1', port: sink.port, tls: 'none' }]
  const box = await appliance()
  const file = join(box.directory, 'pillarbox.yaml')
  writeFileSync(file, JSON.stringify({ outbound: { unverified_domains: 'relay', relays } }))
  await box.app.reload(await loadConfig({ file, env: box.env, cwd: box.directory }))
  const at = await ada(box)
  const { body } = await box.call('GET', at)
  expect(body['can_send_outside']).toBe(false)
  expect(body['cannot_send_outside_reason']).toContain('only to addresses on this box and at the domains of outbound.relays.')
  const both = await box.call('POST', `${at}/emails`, { to: ['eve@near.test', 'bob@far.test'], ...hello })
  expect(both.body.error).toMatchObject({ status: 409, code: 'domain_not_verified', message: body['cannot_send_outside_reason'] })
  const near = await box.call('POST', `${at}/emails`, { to: 'eve@near.test', ...hello })
  expect(near.status).toBe(201)
  await expect.poll(() => sink.messages.length, { timeout: 60_000 }).toBe(1)
})

test('mail that waits when the permission ends stays, and the reason is the sentence of the refusal', async () => {
  const sink = await MailSink.start()
  const box = await appliance({ ...relay(sink.port), ...permitted })
  const at = await ada(box)
  sink.script = (line) => (line.startsWith('MAIL') ? '451 4.3.0 Later' : undefined)
  const { body } = await box.call('POST', `${at}/emails`, { to: 'bob@far.test', ...hello })
  const deferred = async () => (await box.call('GET', `${at}/emails/${body['id']}`)).body['deliveries'][0]
  await expect.poll(deferred, { timeout: 60_000 }).toMatchObject({ status: 'deferred' })
  await box.app.reload(await loadConfig({ env: { ...box.env, ...refused }, cwd: box.directory }))
  const before = sink.connections
  const { data } = (await box.call('GET', '/v1/queue?kind=email')).body
  await box.call('POST', `/v1/queue/${data[0].id}/retry`)
  await expect.poll(deferred, { timeout: 60_000 }).toMatchObject({
    status: 'deferred',
    response: expect.stringMatching(
      /^pillarbox\.test is not verified, so mail from it can be sent only to addresses on this box\./,
    ),
  })
  expect(sink.connections).toBe(before)
})

test.each([
  ['a new box', {}, false, /^pillarbox\.test is not verified, so mail from it can be sent only to addresses on this box\.$/],
  [
    'a box with a relay',
    relay(9),
    false,
    /^pillarbox\.test is not verified, so mail from it can be sent only to addresses on this box\.$/,
  ],
  [
    'one that may use it',
    { ...relay(9), ...permitted },
    true,
    /^pillarbox\.test is not verified, but mail from it can be sent anywhere/,
  ],
  ['one that sends nothing', { PILLARBOX_OUTBOUND__MODE: 'none' }, false, /outgoing mail is disabled \(outbound\.mode is none\)/],
])('%s says at every place what it can send, in one sentence', async (_which, env, can, sentence) => {
  const box = await appliance(env)
  const at = await ada(box)
  const { sending } = (await box.call('GET', '/v1/status')).body
  expect(sending).toMatchObject({ domain: 'pillarbox.test', can_send_outside: can, explanation: expect.stringMatching(sentence) })
  const told = sending.explanation as string
  const config = await loadConfig({ env: box.env, cwd: box.directory })
  const printed = welcome(box.app, config, 'key', null)
  expect(printed).toContain(`Sending: ${told}\n`)
  expect(box.logged.find((line) => line.includes('"started"'))).toContain(JSON.stringify(told))
  const lines = (await box.call('POST', '/v1/doctor')).body['lines'] as Record<string, string>[]
  expect(lines.filter(({ name }) => name === 'sending')).toMatchObject([{ subject: 'pillarbox.test', message: told }])
  for (const path of [at, '/v1/whoami']) {
    const { body } = await box.call('GET', path)
    const reason = body['cannot_send_outside_reason'] as string | null
    expect([path, body['can_send_outside'], reason?.startsWith(`${told} Ask whoever runs this box `)]).toEqual([
      path,
      can,
      can ? undefined : true,
    ])
  }
  expect((await pillarbox(box, 'status')).output).toContain(told)
})

test('the remedy of the doctor is one: with the records that its command shows the box sends, and the line passes', async () => {
  const sink = await MailSink.start()
  const box = await appliance(relay(sink.port))
  const line = async () =>
    ((await box.call('POST', '/v1/doctor')).body['lines'] as Record<string, string>[]).find(({ name }) => name === 'sending')
  expect(await line()).toMatchObject({
    status: 'warn',
    fix: expect.stringMatching(/pillarbox domain check pillarbox\.test\nOr, .*outbound\.unverified_domains to relay\.$/),
  })
  await box.app.reload(await loadConfig({ env: { ...box.env, ...relay(sink.port), ...permitted }, cwd: box.directory }))
  expect(await line()).toMatchObject({ status: 'pass', fix: null })
  await verifiedDomain(box)
  expect(await line()).toMatchObject({
    status: 'pass',
    message: 'pillarbox.test is verified, so mail from it can be sent anywhere, through the relay of this box.',
  })
  expect((await box.call('GET', '/v1/status')).body['sending']).toMatchObject({ can_send_outside: true, fix: null })
})

test('a box that is opened for a command knows its domains as one that runs', async () => {
  const box = await appliance()
  await verifiedDomain(box)
  await box.app.stop()
  const { output } = await pillarbox(box, 'status')
  expect(output).toContain('pillarbox.test is verified, so mail from it can be sent anywhere.')
})
