import { expect, test } from 'vitest'
import { HeldClock } from '../support/held-clock.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'

test('a message goes to the server of its domain as it is kept, with a return path of its own for each recipient', async () => {
  const sink = await MailSink.start()
  const { box, send, until, events, ada } = await sendingBox(sink.port)
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  const id = await send(['bob@far.test', 'eve@far.test'], { text: '.dots\n..\nGrüße\n' })
  const bob = await until(id, 'delivered', 'bob@far.test')
  await until(id, 'delivered', 'eve@far.test')
  expect(bob).toMatchObject({
    smtp_code: 250,
    enhanced_code: '2.0.0',
    response: 'Ok: queued',
    mx: 'mx.far.test',
    tls: null,
    attempts: 1,
  })
  expect(bob.next_attempt_at).toBeNull()
  const [one, two] = sink.messages.toSorted((first, second) => first.to[0]!.localeCompare(second.to[0]!))
  expect([one!.to, two!.to]).toEqual([['bob@far.test'], ['eve@far.test']])
  expect(one!.from).toMatch(/^bounce\+[a-z2-7]{29}@pillarbox\.test$/)
  expect(one!.from).not.toBe(two!.from)
  const { body } = await box.call<string>('GET', `/v1/identities/${ada}/emails/${id}/raw`)
  expect(one!.raw).toBe(body)
  expect(one!.raw).toMatch(/^X-Signed: yes\r\nFrom: Ada <ada@pillarbox\.test>\r\n/)
  expect(one!.raw).toContain('\r\n\r\n.dots\r\n..\r\nGrüße\r\n')
  expect(one!.parameters).toMatch(/^BODY=8BITMIME SIZE=\d+$/)
  expect(await events(id)).toEqual(['email.delivered', 'email.delivered'])
})

test('a message that one recipient has was sent then, whatever becomes of the others', async () => {
  const clock = new HeldClock()
  const replies: Record<string, string> = { ivy: '550 5.1.1 No such user', eve: '550 5.1.1 No such user', sam: '451 4.3.0 Later' }
  const sink = await MailSink.start({ script: (line) => replies[/^RCPT TO:<(\w+)@/.exec(line)?.[1] ?? ''] })
  const { box, send, until, email } = await sendingBox(sink.port, {}, { clock })
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  const none = await send(['ivy@far.test', 'sam@far.test'])
  for (const [to, status] of [
    ['ivy', 'bounced'],
    ['sam', 'deferred'],
  ])
    await until(none, status!, `${to}@far.test`)
  expect(await email(none)).toMatchObject({ status: 'deferred', sent_at: null })
  const id = await send(['sam@far.test', 'eve@far.test', 'bob@far.test'])
  for (const [to, status] of [
    ['eve', 'bounced'],
    ['sam', 'deferred'],
    ['bob', 'delivered'],
  ])
    await until(id, status!, `${to}@far.test`)
  const sent_at = new Date(clock.now()).toISOString()
  expect(await email(id)).toMatchObject({ status: 'deferred', sent_at })
  delete replies['sam']
  clock.advance(3_600_000)
  await box.settled()
  await until(id, 'delivered', 'sam@far.test')
  expect(await email(id)).toMatchObject({ status: 'bounced', sent_at })
})
