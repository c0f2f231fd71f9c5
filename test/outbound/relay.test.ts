import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import type { Pair } from '../../src/certificates/pair.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'

let trusted: Pair
let strange: Pair
const before = getCACertificates('default')
const directory = mkdtempSync(join(tmpdir(), 'pillarbox-relay-'))

beforeAll(async () => {
  trusted = await certificate(join(directory, 'trusted'), 'relay.test')
  strange = await certificate(join(directory, 'strange'), 'relay.test')
  setDefaultCACertificates([...before, trusted.cert])
})
afterAll(() => {
  setDefaultCACertificates(before)
  rmSync(directory, { recursive: true })
})

async function relayed(sink: MailSink, settings: Record<string, string>) {
  const relay = { HOST: 'relay.test', PORT: String(sink.port), USER: 'box', PASSWORD: 'open sesame', ...settings }
  const env = Object.entries(relay).map(([name, value]) => [`PILLARBOX_OUTBOUND__RELAY__${name}`, value])
  const sending = await sendingBox(1, {
    ...Object.fromEntries(env),
    PILLARBOX_OUTBOUND__MODE: 'relay',
    // where a relay is, is the operator's to say
    PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '',
  })
  sending.box.dns.a('relay.test', '127.0.0.1')
  return sending
}

const auth = 'AUTH PLAIN LOGIN'

test.each([
  ['STARTTLS', 'starttls', false],
  ['TLS from the first octet', 'implicit', true],
])('a relay takes all mail over %s, after a login', async (_what, tls, implicit) => {
  const sink = await MailSink.start({ tls: trusted, implicit, extensions: [auth, 'SIZE'] })
  const { send, until, events } = await relayed(sink, { TLS: tls })
  const id = await send(['bob@far.test', 'eve@near.test'])
  const delivery = await until(id, 'sent', 'bob@far.test')
  await until(id, 'sent', 'eve@near.test')
  expect(delivery).toMatchObject({ mx: 'relay.test', tls: expect.stringMatching(/, certificate checked$/), delivered_at: null })
  expect(sink.messages.map(({ secure, user }) => [secure, user])).toEqual([
    [true, 'box'],
    [true, 'box'],
  ])
  expect(await events(id)).toEqual(['email.sent', 'email.sent'])
})

test('nobody logs in without TLS, or with a server of a strange certificate', async () => {
  for (const tls of [undefined, strange]) {
    const sink = await MailSink.start({ extensions: [auth], ...(tls ? { tls } : {}) })
    const { send, until } = await relayed(sink, { TLS: 'starttls' })
    expect(await until(await send('bob@far.test'), 'deferred')).toMatchObject({
      response: expect.stringMatching(/^TLS failed: /),
    })
    expect(sink.commands.filter((line) => /^(?:AUTH|MAIL|DATA)/.test(line))).toEqual([])
  }
  const sink = await MailSink.start({ extensions: [auth] })
  const { send, until } = await relayed(sink, { TLS: 'none' })
  await until(await send('bob@far.test'), 'sent')
  expect(sink.commands.filter((line) => line.startsWith('AUTH'))).toEqual([])
})

test('a login that fails puts mail off, with the reason and without the password', async () => {
  const sink = await MailSink.start({ tls: trusted, extensions: [auth] })
  sink.script = (line) => (line.startsWith('AUTH') ? '535 5.7.8 Who are you' : undefined)
  const { send, until, box } = await relayed(sink, { TLS: 'starttls' })
  const delivery = await until(await send('bob@far.test'), 'deferred')
  expect(delivery).toMatchObject({ response: 'relay.test refused the login: Who are you' })
  expect(box.logged.join('\n')).not.toContain('open sesame')
})

test('a relay without TLS may be named by its address, and nothing is asked of the DNS for it', async () => {
  const sink = await MailSink.start()
  const { send, until, box } = await relayed(sink, { HOST: '127.0.0.1', TLS: 'none' })
  expect(await until(await send('bob@far.test'), 'sent')).toMatchObject({ mx: '127.0.0.1', tls: null })
  expect(box.dns.queries.filter((question) => question.includes('127.0.0.1'))).toEqual([])
})

test('mail for certain domains goes to their own relay, and the rest directly', async () => {
  const relay = await MailSink.start()
  const direct = await MailSink.start()
  const file = join(directory, 'pillarbox.yaml')
  const relays = [{ domains: ['far.test'], host: 'relay.test', port: relay.port, tls: 'none' }]
  writeFileSync(file, JSON.stringify({ outbound: { relays } }))
  const { box, send, until } = await sendingBox(direct.port, { PILLARBOX_CONFIG: file })
  box.dns.a('relay.test', '127.0.0.1').a('near.test', '127.0.0.1')
  await until(await send('bob@far.test'), 'sent')
  await until(await send('eve@near.test'), 'delivered')
  expect([relay.messages.map(({ to }) => to), direct.messages.map(({ to }) => to)]).toEqual([
    [['bob@far.test']],
    [['eve@near.test']],
  ])
})
