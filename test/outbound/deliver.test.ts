import { expect, test } from 'vitest'
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
