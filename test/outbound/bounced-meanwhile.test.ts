import { expect, test } from 'vitest'
import { deliver } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { failureReport } from '../support/reports.ts'

async function far() {
  const clock = new HeldClock()
  const sink = await MailSink.start()
  const sending = await sendingBox(sink.port, {}, { clock })
  sending.box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  return { clock, sink, ...sending }
}

/** The bounce that the far server sends for the message whose return path it saw in this command. */
function bounced(smtp: { host: string; port: number }, mailFrom: string, recipient: string): Promise<string> {
  const path = /<([^>]*)>/.exec(mailFrom)![1]!
  return deliver(smtp, { from: '', to: path, raw: failureReport({ recipient, reporter: 'mx.far.test' }) })
}

test('a bounce that comes while the message is still tried ends the trying', async () => {
  const { clock, sink, box, send, until, events, email } = await far()
  // it took the message, and its 250 was lost
  sink.script = (line, { socket }) => {
    if (line !== '<end>') return undefined
    socket.destroy()
    return null
  }
  const id = await send('bob@far.test')
  await until(id, 'deferred')
  expect(
    await bounced(
      box.smtp,
      sink.commands.find((line) => line.startsWith('MAIL'))!,
      'bob@far.test',
    ),
  ).toMatch(/^250 /)
  await until(id, 'bounced')
  sink.script = undefined
  clock.advance(6 * 3_600_000)
  await box.settled()
  expect(await box.app.metrics.text()).toContain('pillarbox_deliveries{kind="email",state="waiting"} 0')
  expect(sink.commands.filter((line) => line.startsWith('MAIL'))).toHaveLength(1)
  expect(await events(id)).toEqual(['email.deferred', 'email.bounced'])
  const { status, deliveries } = await email(id)
  expect([status, deliveries[0]]).toMatchObject(['bounced', { enhanced_code: '5.1.1', attempts: 1, next_attempt_at: null }])
})

test.each([
  ['the 250', '250 2.0.0 Ok'],
  ['a refusal', '554 5.7.1 No'],
  ['a deferral', '451 4.3.0 Later'],
])('after a bounce that is faster than %s, nothing else is told', async (_what, reply) => {
  const { clock, sink, box, send, until, events } = await far()
  let told: Promise<string> | undefined
  sink.script = (line, { write }) => {
    if (line !== '<end>') return undefined
    told ??= bounced(
      box.smtp,
      sink.commands.findLast((one) => one.startsWith('MAIL'))!,
      'bob@far.test',
    ).finally(() => write(`${reply}\r\n`))
    return null
  }
  const id = await send('bob@far.test')
  await until(id, 'bounced')
  expect(await told).toMatch(/^250 /)
  await box.settled()
  expect((await until(id, 'bounced')).mx).toBe('mx.far.test')
  sink.script = undefined
  clock.advance(6 * 3_600_000)
  await box.settled()
  expect(await box.app.metrics.text()).toContain('pillarbox_deliveries{kind="email",state="waiting"} 0')
  expect(await events(id)).toEqual(['email.bounced'])
  expect(sink.messages).toEqual([])
  expect(await until(id, 'bounced')).toMatchObject({ smtp_code: 550, enhanced_code: '5.1.1' })
})

test('what leaves long after it was accepted, as its account was stopped, has a return path that is valid for weeks', async () => {
  const { clock, sink, box, send, until } = await far()
  sink.script = (line) => (line.startsWith('RCPT') ? '451 4.7.1 Greylisted' : undefined)
  const id = await send('bob@far.test')
  await until(id, 'deferred')
  for (const hours of [1, 24, 72]) {
    clock.advance(hours * 3_600_000)
    await box.settled()
  }
  const paths = sink.commands.filter((line) => line.startsWith('MAIL'))
  expect(paths.length).toBeGreaterThan(3)
  // servers that greylist compare it
  expect(new Set(paths).size).toBe(1)
  clock.advance(40 * 24 * 3_600_000)
  sink.script = undefined
  await box.settled()
  await until(id, 'delivered')
  const last = sink.commands.findLast((line) => line.startsWith('MAIL'))!
  clock.advance(20 * 24 * 3_600_000)
  expect(await bounced(box.smtp, last, 'bob@far.test')).toMatch(/^250 /)
  await until(id, 'bounced')
})
