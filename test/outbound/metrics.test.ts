import { expect, test } from 'vitest'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'

test('the metrics say how much mail waits, is on its way, and what became of the attempts', async () => {
  const sink = await MailSink.start()
  const { box, send, until } = await sendingBox(sink.port)
  box.dns.mx('far.test', 'mx.far.test').mx('near.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  sink.script = (line) => {
    if (line.startsWith('RCPT TO:<late')) return '450 4.2.0 Later'
    if (line.startsWith('RCPT TO:<gone')) return '550 5.1.1 Nobody'
    return line.startsWith('RCPT TO:<slow') ? null : undefined
  }
  await until(await send('bob@far.test'), 'delivered')
  await until(await send('gone@far.test'), 'bounced')
  await until(await send('late@far.test'), 'deferred')
  await send('slow@near.test')
  await expect.poll(() => sink.commands.some((line) => line.startsWith('RCPT TO:<slow'))).toBe(true)
  const text = await box.app.metrics.text()
  for (const line of [
    'pillarbox_deliveries{kind="email",state="waiting"} 1',
    'pillarbox_deliveries{kind="email",state="under_way"} 1',
    'pillarbox_deliveries{kind="webhook",state="waiting"} 0',
    'pillarbox_delivery_attempts_total{kind="email",outcome="done"} 1',
    'pillarbox_delivery_attempts_total{kind="email",outcome="failed"} 1',
    'pillarbox_delivery_attempts_total{kind="email",outcome="deferred"} 1',
    'pillarbox_mail_deliveries_total{result="bounced",tls="none"} 1',
    'pillarbox_delivery_attempt_seconds_count{kind="email"} 3',
    'pillarbox_delivery_age_seconds_count{kind="email"} 1',
  ])
    expect(text).toContain(`${line}\n`)
  expect(text).toMatch(/^pillarbox_deliveries_oldest_seconds\{kind="email"\} \d+(?:\.\d+)?$/m)
  expect(text).toMatch(/^pillarbox_dns_queries_total\{use="delivery",result="found"\} [1-9]/m)
})
