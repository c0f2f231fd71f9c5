import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import type { Pair } from '../../src/certificates/pair.ts'
import { message } from '../support/appliance.ts'
import { movable } from '../support/held-clock.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { PolicyHost } from '../support/policy-host.ts'
import { greeted, plain } from '../support/submission.ts'

let server: Pair
let host: Pair
const before = getCACertificates('default')
const directory = mkdtempSync(join(tmpdir(), 'pillarbox-require-tls-'))

beforeAll(async () => {
  server = await certificate(`${directory}/mx`, 'mx.far.test')
  host = await certificate(`${directory}/host`, 'mta-sts.far.test')
  setDefaultCACertificates([...before, server.cert, host.cert])
})
afterAll(() => {
  setDefaultCACertificates(before)
  rmSync(directory, { recursive: true })
})

test.each([
  ['', {}],
  [', with DANE too', { PILLARBOX_OUTBOUND__DANE: 'true' }],
])(
  'whether there is a policy was not to be learned: that puts mail with REQUIRETLS off, and does not bounce it%s',
  async (_, settings) => {
    const sink = await MailSink.start({ tls: server, extensions: ['REQUIRETLS'] })
    const policies = await PolicyHost.start(host, { mode: 'enforce', mx: 'mx.far.test' })
    const { box, send, until } = await sendingBox(sink.port, settings, { testing: { outsideDial: policies.dial } })
    box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1').a('mta-sts.far.test', '127.0.0.1')
    policies.status = 503
    box.dns.txt('_mta-sts.far.test', 'v=STSv1; id=one;')
    expect(await until(await send('bob@far.test', { require_tls: true }), /bounced|deferred/)).toMatchObject({
      status: 'deferred',
    })
    await until(await send('bob@far.test'), 'delivered')
    box.dns.mx('near.test', 'mx.far.test').fails('_mta-sts.near.test', 'servfail')
    expect(await until(await send('bob@near.test', { require_tls: true }), /bounced|deferred/)).toMatchObject({
      status: 'deferred',
    })
    await until(await send('bob@near.test'), 'delivered')
  },
)

test('REQUIRETLS of a call, of a call for later and of a submission reaches the receiver; without it nothing is said', async () => {
  const clock = movable()
  const sink = await MailSink.start({ tls: server, extensions: ['REQUIRETLS', 'SMTPUTF8', '8BITMIME'] })
  const policies = await PolicyHost.start(host, { mode: 'enforce', mx: 'mx.far.test' })
  const { box, ada, until } = await sendingBox(
    sink.port,
    { PILLARBOX_SUBMISSION__LISTEN: '127.0.0.1:0', PILLARBOX_SUBMISSION__LISTEN_TLS: '127.0.0.1:0' },
    { clock, testing: { outsideDial: policies.dial } },
  )
  box.dns
    .mx('far.test', 'mx.far.test')
    .a('mx.far.test', '127.0.0.1')
    .a('mta-sts.far.test', '127.0.0.1')
    .txt('_mta-sts.far.test', 'v=STSv1; id=one;')
  const write = async (input: object): Promise<string> => {
    const { status, body } = await box.call('POST', `/v1/identities/${ada}/emails`, { to: 'bob@far.test', ...input })
    expect(status).toBe(201)
    return body.id as string
  }
  const handIn = async (parameters: string): Promise<string> => {
    const client = await greeted(box.app.submissionAddresses.starttls[0]!.port)
    await client.say(plain('ada@pillarbox.test', box.key))
    expect(await client.say(`MAIL FROM:<ada@pillarbox.test>${parameters}`)).toMatch(/^250 /)
    await client.say('RCPT TO:<bob@far.test>')
    await client.say('DATA')
    client.send(message({ From: 'ada@pillarbox.test', To: 'bob@far.test', Subject: 'By hand' }, 'Hi\n'))
    const id = (await client.say('.')).split(' ').at(-1)!
    client.destroy()
    return id
  }
  const asked = async (id: string): Promise<boolean> => {
    const { tls } = await until(id, 'delivered')
    expect(tls).toMatch(/, certificate checked$/)
    return sink.messages.at(-1)!.parameters.split(' ').includes('REQUIRETLS')
  }
  expect(await asked(await write({ require_tls: true }))).toBe(true)
  expect(await asked(await write({}))).toBe(false)
  expect(await asked(await handIn(' REQUIRETLS'))).toBe(true)
  expect(await asked(await handIn(''))).toBe(false)
  const later = await write({ require_tls: true, send_at: new Date(clock.now() + 3_600_000).toISOString() })
  clock.ahead += 3_700_000
  await box.restart()
  expect(await asked(later)).toBe(true)
})
