import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { expect, onTestFinished, test, vi } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import type { Pair } from '../../src/certificates/pair.ts'
import type { Appliance } from '../support/appliance.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { pillarbox } from '../support/pillarbox.ts'

type Line = Record<string, unknown> & { msg: string; level: string }

async function certificateOf(name: string): Promise<Pair> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-attempts-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return certificate(join(directory, 'tls'), name)
}

function lines(box: Appliance, part = 'outbound'): Line[] {
  const all = box.logged.map((line) => JSON.parse(line) as Line)
  return all.filter((line) => line['part'] === part && line.level !== 'debug')
}

/** The lines of attempts, once there are so many. */
function attempts(box: Appliance, count: number): Promise<Line[]> {
  return vi.waitFor(
    () => {
      const found = lines(box).filter(({ msg }) => msg === 'delivery attempt' || msg === 'delivery failed')
      expect(found).toHaveLength(count)
      return found
    },
    { timeout: 100_000, interval: 20 },
  )
}

test('each attempt to deliver is one line: message, delivery, server, TLS, codes, reply, and what is next', async () => {
  const sink = await MailSink.start({ tls: await certificateOf('mx.far.test') })
  sink.script = (line) => (line.startsWith('RCPT') ? '451-4.7.1 Greylisted,\r\n451 4.7.1 come back' : undefined)
  const { box, send, email, until } = await sendingBox(sink.port)
  box.dns.mx('far.test', 'mx.far.test')
  box.dns.a('mx.far.test', '127.0.0.1')
  const id = await send('bob@far.test')
  await until(id, 'deferred')
  const [first] = await attempts(box, 1)
  const { message_id } = await email(id)
  const [entry] = (await box.call('GET', '/v1/queue')).body.data
  expect(first).toMatchObject({
    level: 'info',
    msg: 'delivery attempt',
    message_id,
    email_id: id,
    queue_id: entry.id,
    from: 'ada@pillarbox.test',
    to: 'bob@far.test',
    return_path: expect.stringMatching(/^bounce\+\S+@pillarbox\.test$/),
    mx: 'mx.far.test',
    ip: '127.0.0.1',
    tls: 'TLSv1.3',
    cipher: expect.stringMatching(/^TLS_/),
    verified: false,
    code: 451,
    enhanced_code: '4.7.1',
    reply: '451 4.7.1 Greylisted, come back',
    attempt: 1,
    result: 'deferred',
    next_attempt_at: entry.due_at,
    ms: expect.any(Number),
  })
  sink.script = undefined
  await box.call('POST', `/v1/queue/${entry.id}/retry`)
  await until(id, 'delivered')
  const [, second] = await attempts(box, 2)
  expect(second).toMatchObject({
    queue_id: entry.id,
    mx: 'mx.far.test',
    code: 250,
    enhanced_code: '2.0.0',
    reply: '250 2.0.0 Ok: queued',
    attempt: 2,
    result: 'delivered',
    next_attempt_at: null,
  })
})

test('what bounces, and what reaches no server, is a line as well; hostile replies are bounded and on one line', async () => {
  const sink = await MailSink.start()
  sink.script = (line) => (line.startsWith('RCPT') ? `550 5.1.1 \u009b31mNo such user ${'x'.repeat(5000)}` : undefined)
  const { box, send, until } = await sendingBox(sink.port)
  box.dns.mx('far.test', 'mx.far.test')
  box.dns.a('mx.far.test', '127.0.0.1')
  box.dns.mx('closed.test', 'mx.closed.test')
  // nothing listens there
  box.dns.a('mx.closed.test', '127.0.0.9')
  await until(await send('bob@far.test'), 'bounced')
  const [bounced] = await attempts(box, 1)
  expect(bounced).toMatchObject({
    level: 'warn',
    msg: 'delivery failed',
    mx: 'mx.far.test',
    ip: '127.0.0.1',
    tls: null,
    code: 550,
    enhanced_code: '5.1.1',
    result: 'bounced',
  })
  expect(String(bounced!['reply']).length).toBeLessThan(600)
  for (const line of box.logged) expect(line.trimEnd()).not.toMatch(/[\n\r\u0080-\u009f]/)
  await until(await send('eve@closed.test'), 'deferred')
  const [, refused] = await attempts(box, 2)
  expect(refused).toMatchObject({
    to: 'eve@closed.test',
    mx: 'mx.closed.test',
    ip: '127.0.0.9',
    code: null,
    enhanced_code: '4.4.1',
    reply: '127.0.0.9: the connection was refused',
    result: 'deferred',
  })
})

test('the queue shows code, server and address of each attempt, by API and command', async () => {
  const sink = await MailSink.start()
  sink.script = (line) => (line.startsWith('RCPT') ? '450 4.2.1 Not just now' : undefined)
  const { box, send, until } = await sendingBox(sink.port)
  box.dns.mx('far.test', 'mx.far.test')
  box.dns.a('mx.far.test', '127.0.0.1')
  await until(await send('bob@far.test'), 'deferred')
  const answer = {
    smtp_code: 450,
    enhanced_code: '4.2.1',
    response: 'Not just now',
    mx: 'mx.far.test',
    ip: '127.0.0.1',
    tls: null,
  }
  const [entry] = (await box.call('GET', '/v1/queue')).body.data
  expect(entry).toMatchObject({ ...answer, last_answer: 'Not just now' })
  const { body: one } = await box.call('GET', `/v1/queue/${entry.id}`)
  expect(one).toMatchObject({ ...answer, history: [{ number: 1, outcome: 'deferred', ...answer }] })
  const listed = await pillarbox(box, ['queue', 'list'])
  expect(listed.output).toMatch(/CODE +MX +LAST ANSWER\n.* 450 4\.2\.1 +mx\.far\.test \[127\.0\.0\.1\] +Not just now\n$/s)
  const shown = await pillarbox(box, ['queue', 'show', entry.id as string])
  expect(shown.output).toMatch(/1 +\S+ +deferred +450 4\.2\.1 +mx\.far\.test \[127\.0\.0\.1\] +Not just now\n$/)
  expect(JSON.parse((await pillarbox(box, ['queue', 'show', entry.id as string, '--json'])).output)).toMatchObject(answer)
})

test('at debug, the whole dialogue with a relay is logged, without the message and the password', async () => {
  const before = getCACertificates('default')
  onTestFinished(() => setDefaultCACertificates(before))
  const tls = await certificateOf('relay.test')
  setDefaultCACertificates([...before, tls.cert])
  const sink = await MailSink.start({ tls, extensions: ['SIZE 10485760', 'AUTH PLAIN LOGIN'] })
  const env = {
    PILLARBOX_OUTBOUND__MODE: 'relay',
    PILLARBOX_OUTBOUND__RELAY__HOST: 'relay.test',
    PILLARBOX_OUTBOUND__RELAY__PORT: String(sink.port),
    PILLARBOX_OUTBOUND__RELAY__USER: 'box',
    PILLARBOX_OUTBOUND__RELAY__PASSWORD: 'tulips-and-onions',
  }
  const { box, send, until } = await sendingBox(sink.port, env)
  box.dns.a('relay.test', '127.0.0.1')
  await until(await send('bob@far.test', { text: 'The garden is wet\n' }), 'sent')
  const said = box.logged.map((line) => JSON.parse(line) as Line).filter(({ level }) => level === 'debug')
  expect(said).toContainEqual(
    expect.objectContaining({ msg: 'SMTP reply received', reply: '220 sink.test ESMTP', ip: '127.0.0.1' }),
  )
  expect(said).toContainEqual(expect.objectContaining({ msg: 'SMTP command sent', command: expect.stringMatching(/^EHLO /) }))
  const [line] = await attempts(box, 1)
  expect(line).toMatchObject({ mx: 'relay.test', ip: '127.0.0.1', tls: 'TLSv1.3', verified: true, result: 'sent' })
  const log = box.logged.join('')
  const secret = 'tulips-and-onions'
  for (const form of [secret, Buffer.from(secret).toString('base64'), Buffer.from(`\0box\0${secret}`).toString('base64')]) {
    expect(log).not.toContain(form)
  }
  expect(log).not.toContain('The garden is wet')
})
