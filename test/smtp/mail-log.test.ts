import { expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { startReceiver } from '../support/receiver.ts'
import { Dialogue } from '../support/smtp.ts'

type Line = Record<string, unknown> & { msg: string }

function lines(logged: string[], text: string): Line[] {
  return logged.map((line) => JSON.parse(line) as Line).filter(({ msg, level }) => msg === text && level === 'info')
}

async function ada(box: Appliance): Promise<string> {
  return (await box.call('POST', '/v1/identities', { name: 'Ada' })).body['email'] as string
}

test('a message taken is one line: who, whom, how much, what the checks said, what we said, and nothing of itself', async () => {
  const box = await appliance()
  const to = await ada(box)
  const raw = message({ Subject: 'Between us' }, 'Your code is 482913, the password is tulip\n')
  const reply = await deliver(box.smtp, { to: [to, 'postmaster'], raw })
  const [line, ...others] = lines(box.logged, 'message taken')
  expect(others).toEqual([])
  expect(line).toMatchObject({
    queue_id: /queued as (.*)$/.exec(reply)?.[1],
    message_id: null,
    ip: '127.0.0.1',
    helo: 'client.test',
    from: 'sender@sender.test',
    from_domain: 'sender.test',
    to: [to, 'postmaster'],
    size: raw.length,
    spf: 'none',
    dkim: [],
    dmarc: 'none',
    arc: 'none',
    spam: false,
    tls: null,
    result: 'accepted',
    code: 250,
    enhanced_code: '2.0.0',
    reply,
    ms: expect.any(Number),
  })
  expect(box.logged.join('')).not.toMatch(/Between us|482913|tulip/)
})

test('a message refused says what the checks found, and the reply', async () => {
  const box = await appliance()
  const to = await ada(box)
  box.dns.txt('_dmarc.bank.test', 'v=DMARC1; p=reject')
  const reply = await deliver(box.smtp, {
    to,
    raw: message({ From: 'x@bank.test', Subject: 'Pay', 'Message-ID': '<pay.1@bank.test>' }, 'now\n'),
  })
  expect(reply).toMatch(/^550 5\.7\.26 /)
  expect(lines(box.logged, 'message refused')).toMatchObject([
    {
      queue_id: null,
      message_id: '<pay.1@bank.test>',
      from_domain: 'bank.test',
      to: [to],
      dmarc: 'fail',
      result: 'refused',
      code: 550,
      enhanced_code: '5.7.26',
      reply,
    },
  ])
})

test('a refused recipient is one line, whatever the address holds', async () => {
  const box = await appliance()
  const client = await Dialogue.hello(box.smtp.port)
  await client.say('MAIL FROM:<> SMTPUTF8')
  const replies: string[] = []
  const addresses = ['nobody@pillarbox.test', '"}\\ñ{"@pillarbox.test', '$(id)@elsewhere.test']
  for (const address of addresses) replies.push(await client.say(`RCPT TO:<${address}>`))
  client.destroy()
  const logged = lines(box.logged, 'recipient refused')
  expect(logged).toMatchObject(
    addresses.map((to, index) => ({
      ip: '127.0.0.1',
      helo: 'client.test',
      from: '',
      to,
      reply: replies[index],
    })),
  )
  for (const line of box.logged) expect(line.trimEnd()).not.toMatch(/[\n\r]/)
})

test('a message is logged as well when it is broken, too large, or our own trouble', async () => {
  const box = await startReceiver({ size: 10_000 })
  const client = await Dialogue.hello(box.port)
  const head = 'From: Ada <ada@far.test>\r\nMessage-ID:\r\n <big.1@far.test>\r\n\r\n'
  const said = [await client.deliver(head + `${'x'.repeat(998)}\r\n`.repeat(11))]
  box.deliveryTarget.before = () => Promise.reject(new Error('the disk at /secret/path'))
  said.push(await client.deliver('Subject: x\r\n\r\nx\r\n'), await client.deliver('a\nb\r\n'))
  const endless = await Dialogue.hello(box.port)
  await endless.begin()
  endless.send('Message-ID: <endless@far.test>\r\n\r\n')
  endless.send('y'.repeat(100_000))
  await endless.end()
  const logged = lines(box.logged, 'message refused')
  said.push(endless.transcript.trimEnd().split('\r\n').at(-1)!)
  expect(logged.map(({ reply }) => String(reply).slice(0, 9))).toEqual(said.map((reply) => reply.slice(0, 9)))
  expect(logged.map(({ size }) => size)).toEqual([11_000 + head.length, 17, 5, expect.any(Number)])
  // which message it was is known of one that was not kept, too
  expect(logged[0]).toMatchObject({ message_id: '<big.1@far.test>', from_domain: 'far.test', code: 552, enhanced_code: '5.3.4' })
  expect(logged[3]).toMatchObject({ message_id: '<endless@far.test>', code: 552 })
  expect(new Set(logged.map(({ session }) => session)).size).toBe(4)
  expect(JSON.stringify(logged)).not.toContain('secret')
  client.destroy()
  await box.receiver.stop()
})
