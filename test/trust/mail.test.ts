import { expect, test } from 'vitest'
import type { Reputation } from '../../src/trust/model.ts'
import { type Appliance, type Call, deliver, message } from '../support/appliance.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { boxProcess } from '../support/process.ts'
import { rsaKey, sign } from '../support/signed-mail.ts'
import { anotherAccount } from './accounts.ts'

test('what becomes of mail counts once: outside of the account, hard bounces alone, first answers with a DMARC pass; deleting changes nothing', async () => {
  const sink = await MailSink.start({
    script: (line) =>
      /^RCPT TO:<(?:nobody|gone)@/.test(line)
        ? '550 5.1.1 Nobody'
        : line.startsWith('RCPT TO:<full@')
          ? '552 5.2.2 Full'
          : undefined,
  })
  const { box, ada, send, until, email } = await sendingBox(sink.port)
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  box.dns.txt('far.test', 'v=spf1 ip4:127.0.0.1 -all').txt('_dmarc.far.test', 'v=DMARC1; p=none')
  const { body: ben } = await box.call('POST', '/v1/identities', { name: 'Ben' })
  const other = await anotherAccount(box)
  const { body: cyd } = await other('POST', '/v1/identities', { name: 'Cyd' })

  const first = await send(['bob@far.test', 'eve@far.test', ben.email, cyd.email, 'postmaster@pillarbox.test'])
  for (const to of ['bob@far.test', 'eve@far.test', ben.email, cyd.email, 'postmaster@pillarbox.test'])
    await until(first, 'delivered', to)
  const lost = await send(['nobody@far.test', 'full@far.test'])
  for (const to of ['nobody@far.test', 'full@far.test']) await until(lost, 'bounced', to)
  await counted(box, ada, { deliveries: 3, bounces: 1, complaints: 0, replies: 0 })

  // taken, and given back later; then called spam
  const path = (to: string): string => sink.messages.find((one) => one.to[0] === to)!.from
  expect(await returned(box, path('eve@far.test'), bounce('eve@far.test', '5.1.1'))).toMatch(/^250/)
  expect(await returned(box, path('eve@far.test'), bounce('eve@far.test', '5.1.1'))).toMatch(/^250/)
  expect(await returned(box, path('bob@far.test'), complaint(path('bob@far.test')))).toMatch(/^250/)
  await counted(box, ada, { deliveries: 3, bounces: 2, complaints: 1, replies: 0 })

  const { message_id } = await email(first)
  const answers = [
    ['bob@far.test', {}],
    // the same author again in the same conversation
    ['bob@far.test', {}],
    // nobody vouches for this one
    ['mallory@unproven.test', {}],
    // a program
    ['eve@far.test', { 'Auto-Submitted': 'auto-replied' }],
    // no answer to anything of hers
    ['zoe@far.test', { 'In-Reply-To': '<other@far.test>' }],
  ] as const
  for (const [from, fields] of answers) {
    const raw = message(
      {
        From: from,
        'In-Reply-To': message_id!,
        Subject: 'Re: Hello',
        'Message-ID': `<${crypto.randomUUID()}@far.test>`,
        ...fields,
      },
      'Yes\n',
    )
    expect(await deliver(box.smtp, { from, to: 'ada@pillarbox.test', raw })).toMatch(/^250/)
  }
  // that it answers hers was put before what its author signed
  const rsa = rsaKey()
  box.dns.txt('_dmarc.signed.test', 'v=DMARC1; p=none').txt('s._domainkey.signed.test', rsa.record)
  const letter = message({ From: 'lee@signed.test', Subject: 'News', 'Message-ID': '<n@signed.test>' }, 'News\n')
  const put = `In-Reply-To: ${message_id}\r\n${(await sign(letter, 'signed.test', 's', rsa)).toString()}`
  expect(await deliver(box.smtp, { from: 'lee@signed.test', to: 'ada@pillarbox.test', raw: put })).toMatch(/^250/)
  await reply(box.call, ben.id)
  await reply(other, cyd.id)
  // Bob's, and that of the other account
  await counted(box, ada, { deliveries: 3, bounces: 2, complaints: 1, replies: 2 })

  const { body: all } = await box.call('GET', `/v1/identities/${ada}/emails?direction=all&limit=200`)
  for (const { id } of all.data) expect((await box.call('DELETE', `/v1/identities/${ada}/emails/${id}`)).status).toBe(200)
  const before = await reputation(box, ada)
  expect(before.counters).toMatchObject({ deliveries: 3, bounces: 2, complaints: 1, replies: 2 })
  await box.app.stop()
  const recount = boxProcess(box.env, ['reputation', 'recount'])
  expect([await recount.ended, recount.errors()]).toEqual([0, ''])
  expect(recount.output()).toMatch(/^The log has events of \d identities\. All counts were correct\.\n$/)
  await box.restart()
  expect((await reputation(box, ada)).counters).toEqual(before.counters)
  expect(await reputation(box, ben.id)).toMatchObject({ score: 0.5, counters: { deliveries: 0, replies: 0 } })
})

async function reputation(box: Appliance, id: string): Promise<Reputation> {
  return (await box.call<Reputation>('GET', `/v1/identities/${id}/reputation`)).body
}

async function counted(box: Appliance, id: string, counters: Record<string, number>): Promise<void> {
  await box.settled()
  expect((await reputation(box, id)).counters).toMatchObject(counters)
}

/** Answers the newest message, once it is there. */
async function reply(call: Call, id: string): Promise<void> {
  const { body } = await call('GET', `/v1/identities/${id}/emails`)
  const { status } = await call('POST', `/v1/identities/${id}/emails/${body.data[0].id}/reply`, { body_text: 'Yes' })
  expect(status).toBe(201)
}

function returned(box: Appliance, to: string, raw: string): Promise<string> {
  return deliver(box.smtp, { from: '', to, raw })
}

function bounce(address: string, status: string): string {
  return report(
    'delivery-status',
    `message/delivery-status\n\nReporting-MTA: dns; mx.far.test\n\nFinal-Recipient: rfc822; ${address}
Action: failed\nStatus: ${status}\nDiagnostic-Code: smtp; 550 ${status} Nobody\n`,
  )
}

function complaint(from: string): string {
  return report(
    'feedback-report',
    `message/feedback-report\n\nFeedback-Type: abuse\nUser-Agent: Loop/1.0\nVersion: 1
Original-Mail-From: <${from}>\n`,
  )
}

function report(type: string, part: string): string {
  const body = `--r\nContent-Type: text/plain\n\nSee below.\n--r\nContent-Type: ${part}--r--\n`
  return message(
    { From: 'mailer-daemon@far.test', Subject: 'Report', 'Content-Type': `multipart/report; report-type=${type}; boundary=r` },
    body,
  )
}
