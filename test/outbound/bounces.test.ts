import { readFileSync } from 'node:fs'
import { beforeAll, afterAll, describe, expect, test } from 'vitest'
import type { Email } from '../../src/mail/model.ts'
import { appliance, type Appliance, deliver, message, openAppliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { noted, rows, sent, type Sent } from '../support/sent.ts'

interface Identity {
  id: string
  email: string
}

let box: Appliance
let close: () => Promise<void>
let ada: Identity

beforeAll(async () => {
  ;({ box, close } = await openAppliance())
  ada = (await box.call('POST', '/v1/identities', { name: 'Ada' })).body as never
})
afterAll(() => close())

describe('a bounce', () => {
  test('marks the one recipient it is about, and no one else', async () => {
    const to = ['ann@away.test', 'bob@away.test', 'cid@away.test']
    const mail = await sent(box, ada, to)
    // it names all three, but came by the path of the second
    const raw = bounce(to.map((address) => ({ address, status: address.startsWith('bob') ? '5.1.1' : '5.7.1' })))
    expect(await returned(mail.paths[1]!, raw)).toMatch(/^250 /)

    const email = await shown(mail)
    expect(email.status).toBe('bounced')
    expect(email.deliveries.map(({ status }) => status)).toEqual(['delivered', 'bounced', 'delivered'])
    expect(email.deliveries[1]).toMatchObject({
      recipient: 'bob@away.test',
      smtp_code: 550,
      enhanced_code: '5.1.1',
      response: '550 5.1.1 <bob@away.test>: told you so (reported by mx.away.test)',
      next_attempt_at: null,
    })
    expect(await told('email.bounced', mail)).toMatchObject([
      { data: { id: mail.id, delivery: { recipient: 'bob@away.test', status: 'bounced' } } },
    ])
    expect(suppressed(mail)).toEqual([
      { email: 'bob@away.test', source: 'bounce', reason: '550 5.1.1 <bob@away.test>: told you so (reported by mx.away.test)' },
    ])
  })

  test('that comes twice is told once', async () => {
    const mail = await sent(box, ada, ['twice@away.test'])
    const raw = bounce([{ address: 'twice@away.test', status: '5.1.1' }])
    expect(await returned(mail.paths[0]!, raw)).toMatch(/^250 /)
    expect(await returned(mail.paths[0]!, raw.replace('told you so', 'once more'))).toMatch(/^250 /)
    expect(await told('email.bounced', mail)).toHaveLength(1)
    expect((await shown(mail)).deliveries[0]!.response).toContain('told you so')
  })

  test.each([
    ['5.2.2', 'The mailbox is full', false],
    ['5.7.1', 'Message contains spam', false],
    ['4.4.7', 'Expired', false],
    ['5.1.8', 'Your domain is unknown', false],
    ['5.0.0', 'User unknown', true],
    ['5.5.0', 'Recipient blocked by policy: address invalid', false],
    ['5.2.1', 'Disabled', true],
    ['5.1.10', 'Recipient not found', true],
  ])('with %s %s: suppressed %s', async (status, words, hard) => {
    const mail = await sent(box, ada, [`hard-${status}@away.test`])
    await returned(mail.paths[0]!, bounce([{ address: `hard-${status}@away.test`, status, words: `550 ${words}` }]))
    expect(await shown(mail)).toMatchObject({ status: 'bounced' })
    expect(suppressed(mail)).toHaveLength(hard ? 1 : 0)
  })

  test('has no characters that turn the direction of what stands beside its words', async () => {
    const mail = await sent(box, ada, ['turned@away.test'])
    await returned(
      mail.paths[0]!,
      bounce([{ address: 'turned@away.test', status: '5.1.1', words: '550 No\u202eresu\u2066 such' }]),
    )
    expect((await shown(mail)).deliveries[0]!.response).toBe('550 Noresu such (reported by mx.away.test)')
  })

  test('of an address that leads to several others suppresses only when none of them is reached', async () => {
    const mail = await sent(box, ada, ['list@away.test', 'team@away.test'])
    const blocks = [
      { address: 'one@inner.test', status: '5.1.1', original: 'list@away.test' },
      { address: 'two@inner.test', status: '2.0.0', original: 'list@away.test', action: 'delivered' },
    ]
    await returned(mail.paths[0]!, bounce(blocks))
    expect(await shown(mail)).toMatchObject({ status: 'bounced' })
    expect(suppressed(mail)).toEqual([])
    // names nobody we wrote to: the address led there
    await returned(mail.paths[1]!, bounce([{ address: 'three@inner.test', status: '5.1.1' }]))
    expect(suppressed(mail)).toMatchObject([{ email: 'team@away.test' }])
  })

  test('of a server without reports is understood', async () => {
    const mail = await sent(box, ada, ['nobody@q.test'])
    const qmail = readFileSync(new URL('../fixtures/reports/qmail.eml', import.meta.url))
    await returned(mail.paths[0]!, qmail)
    expect((await shown(mail)).deliveries[0]).toMatchObject({ status: 'bounced', enhanced_code: '5.1.1' })
    expect(suppressed(mail)).toMatchObject([{ email: 'nobody@q.test', source: 'bounce' }])
  })

  test('is the last word, also when our own record of the 250 comes after it', async () => {
    const mail = await sent(box, ada, ['fast@away.test'], { status: 'sending' })
    await returned(mail.paths[0]!, bounce([{ address: 'fast@away.test', status: '5.1.1' }]))
    const before = (await shown(mail)).deliveries
    await noted(box, mail.id, 0, { status: 'delivered', smtp_code: 250, response: '250 Ok', mx: 'mx.away.test', attempts: 2 })
    expect(await shown(mail)).toMatchObject({ status: 'bounced' })
    expect((await shown(mail)).deliveries).toMatchObject([{ ...before[0], mx: 'mx.away.test', attempts: 2 }])
  })

  test('of a message that was deleted or given up changes nothing', async () => {
    const given = await sent(box, ada, ['given-up@away.test'], { status: 'failed' })
    await returned(given.paths[0]!, bounce([{ address: 'given-up@away.test', status: '5.1.1' }]))
    expect(await shown(given)).toMatchObject({ status: 'failed' })
    const mail = await sent(box, ada, ['deleted@away.test'])
    await box.call('DELETE', `/v1/identities/${ada.id}/emails/${mail.id}`)
    expect(await returned(mail.paths[0]!, bounce([{ address: 'deleted@away.test', status: '5.1.1' }]))).toMatch(/^250 /)
    expect(suppressed(mail)).toEqual([])
  })
})

test('a delay is written down, and raises nothing', async () => {
  const mail = await sent(box, ada, ['slow@away.test'], { status: 'sent' })
  await returned(mail.paths[0]!, bounce([{ address: 'slow@away.test', status: '4.4.1', action: 'delayed', words: '451 Later' }]))
  const { deliveries } = await shown(mail)
  expect(deliveries).toMatchObject([{ status: 'sent', enhanced_code: '4.4.1', response: '451 Later (reported by mx.away.test)' }])
  expect(await told('email.deferred', mail)).toEqual([])
})

test('a relay that reports the delivery makes sent delivered; one that only passed it on does not', async () => {
  const mail = await sent(box, ada, ['one@away.test', 'two@away.test'], { status: 'sent' })
  for (const [index, action] of ['delivered', 'relayed'].entries())
    await returned(
      mail.paths[index]!,
      bounce([{ address: ['one@away.test', 'two@away.test'][index]!, status: '2.0.0', action, words: '250 Fine' }]),
    )
  const { deliveries, status } = await shown(mail)
  expect(deliveries.map((delivery) => delivery.status)).toEqual(['delivered', 'sent'])
  expect(deliveries[0]!.delivered_at).not.toBeNull()
  expect(deliveries[1]!.response).toContain('250 Fine')
  expect(status).toBe('sent')
  expect(await told('email.delivered', mail)).toMatchObject([{ data: { delivery: { recipient: 'one@away.test' } } }])
})

test('answers of programs, and what is no report, are taken and change nothing', async () => {
  const mail = await sent(box, ada, ['away@away.test'])
  const before = await shown(mail)
  const vacation = readFileSync(new URL('../fixtures/reports/vacation.eml', import.meta.url))
  const person = message({ To: mail.paths[0]!, Subject: 'Re: Figures' }, 'away@away.test: 550 5.1.1 User unknown\n')
  const dmarc = readFileSync(new URL('../fixtures/reports/dmarc-zip.eml', import.meta.url))
  const broken = bounce([{ address: 'away@away.test', status: '5.1.1' }]).replaceAll(/^(?:Action|Status):.*\r\n/gm, '')
  for (const raw of [vacation, person, dmarc, broken, '']) expect(await returned(mail.paths[0]!, raw)).toMatch(/^250 /)
  expect(await shown(mail)).toEqual(before)
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  expect(body.data).toEqual([])
  expect(box.logged.some((line) => line.includes('"outcome":"automatic"') && line.includes(mail.id))).toBe(true)
  expect(box.logged.some((line) => line.includes('"outcome":"unknown"') && line.includes(mail.id))).toBe(true)
})

test('a return path that is none of ours, or too old, is refused at RCPT', async () => {
  const clock = new HeldClock()
  const held = await appliance({}, clock)
  const { body } = await held.call('POST', '/v1/identities', { name: 'Ada' })
  const [path = ''] = (await sent(held, body as never, ['bob@away.test'], { clock })).paths
  const [local = '', domain = ''] = path.split('@')
  const last = local.endsWith('a') ? 'q' : 'a'
  const forged = [
    `${local.slice(0, -1)}${last}@${domain}`,
    `bounce@${domain}`,
    `bounce+@${domain}`,
    `bounce+${'a'.repeat(29)}@${domain}`,
  ]
  const raw = bounce([{ address: 'bob@away.test', status: '5.1.1' }])
  for (const to of forged)
    expect([to, await deliver(held.smtp, { from: '', to, raw })]).toEqual([to, expect.stringMatching(/^550 5\.1\.1 /)])
  // servers may fold the case
  expect(await deliver(held.smtp, { from: '', to: path.toUpperCase(), raw })).toMatch(/^250 /)
  clock.advance(29 * 86_400_000)
  expect(await deliver(held.smtp, { from: '', to: path, raw })).toMatch(/^250 /)
  clock.advance(2 * 86_400_000)
  expect(await deliver(held.smtp, { from: '', to: path, raw })).toMatch(/^550 5\.1\.1 /)
})

describe('a complaint', () => {
  test.each(['abuse@pillarbox.test', 'postmaster@pillarbox.test', 'ada@pillarbox.test', 'the return path'])(
    'that comes to %s marks the recipient and suppresses',
    async (place) => {
      const address = `complains-${place.split('@')[0]!.replaceAll(' ', '-')}@loop.test`
      const mail = await sent(box, ada, ['other@loop.test', address])
      const to = place === 'the return path' ? mail.paths[1]! : place
      const report = complaint({ from: mail.paths[1]! })
      for (let time = 0; time < 2; time++)
        expect(
          await deliver(box.smtp, { from: 'feedback@loop.test', to, raw: report.replace('Date: ', `Date:${' '.repeat(time)} `) }),
        ).toMatch(/^250 /)
      expect(await shown(mail)).toMatchObject({ status: 'delivered' })
      expect(await told('email.complained', mail)).toMatchObject([
        { data: { delivery: { recipient: address, status: 'delivered' } } },
      ])
      expect(suppressed(mail)).toEqual([{ email: address, source: 'complaint', reason: 'abuse, reported by Loop/1.0' }])
      const [row] = rows<{ complained_at: string | null }>(box, `SELECT * FROM email_recipients WHERE address = '${address}'`)
      expect(row!.complained_at).not.toBeNull()
    },
  )

  test('whose addresses are blacked out is known by the Return-Path of what it brings back', async () => {
    const mail = await sent(box, ada, ['redacted@loop.test'])
    const raw = complaint({ from: 'redacted', returned: `Return-Path: <${mail.paths[0]!}>\r\nSubject: Figures\r\n` })
    await deliver(box.smtp, { from: 'feedback@loop.test', to: 'abuse@pillarbox.test', raw })
    expect(suppressed(mail)).toMatchObject([{ email: 'redacted@loop.test', source: 'complaint' }])
  })

  test('that is forged, or none, changes nothing', async () => {
    const mail = await sent(box, ada, ['innocent@loop.test'])
    const before = await shown(mail)
    const [path = ''] = mail.paths
    const forged = [
      complaint({ from: 'ada@pillarbox.test' }),
      complaint({ from: path.replace(/.@/, (end) => (end === 'a@' ? 'q@' : 'a@')) }),
      complaint({ from: path.replace('bounce+', 'ada+') }),
      complaint({ from: path, type: 'not-spam' }),
      complaint({ from: path, type: 'auth-failure' }),
      complaint({ from: path }).replace('message/feedback-report', 'text/plain'),
      complaint({ from: 'x@loop.test', returned: `From: ada@pillarbox.test\r\nMessage-ID: ${mail.message_id}\r\n` }),
    ]
    for (const raw of forged) expect(await deliver(box.smtp, { to: 'abuse@pillarbox.test', raw })).toMatch(/^250 /)
    expect(await shown(mail)).toEqual(before)
    expect(await told('email.complained', mail)).toEqual([])
    expect(suppressed(mail)).toEqual([])
  })
})

test('a bounce to the address of an identity is kept as mail, marked automated, and changes no status', async () => {
  const bob: Identity = (await box.call('POST', '/v1/identities', { name: 'Bob' })).body as never
  const mail = await sent(box, bob, ['ann@away.test'])
  const before = await shown(mail, bob)
  const raw = bounce([{ address: 'ann@away.test', status: '5.1.1' }], mail.message_id)
  expect(await deliver(box.smtp, { from: '', to: bob.email, raw })).toMatch(/^250 /)
  const { body } = await box.call('GET', `/v1/identities/${bob.id}/emails`)
  expect(body.data).toMatchObject([{ automated: true, status: 'received', subject: 'Undelivered Mail Returned to Sender' }])
  expect(await shown(mail, bob)).toEqual(before)
  expect(suppressed(mail)).toEqual([])
  // the null sender alone says as much
  await deliver(box.smtp, { from: '', to: bob.email, raw: message({ Subject: 'Plain words' }, 'Hello\n') })
  const { body: plain } = await box.call('GET', `/v1/identities/${bob.id}/emails?subject=plain`)
  expect(plain.data).toMatchObject([{ automated: true }])
})

test('nothing that comes in makes the box send anything', async () => {
  const mail = await sent(box, ada, ['ann@away.test', 'bob@away.test'])
  const [one = '', two = ''] = mail.paths
  box.dns.txt('_dmarc.bank.test', 'v=DMARC1; p=reject').txt('bank.test', 'v=spf1 -all')
  const outgoing = (): unknown => [
    rows(box, 'SELECT count(*) AS count FROM deliveries_queue'),
    rows(box, "SELECT count(*) AS count FROM emails WHERE direction = 'outbound'"),
  ]
  const before = outgoing()
  for (let index = 0; index < 200; index++) {
    const from = index % 2 ? '' : 'ada@pillarbox.test'
    expect(await deliver(box.smtp, { from, to: `nobody-${index}@pillarbox.test`, raw: 'x' })).toMatch(/^550 5\.1\.1 /)
  }
  const forged = message({ From: 'Bank <office@bank.test>' }, 'Pay\n')
  for (let index = 0; index < 50; index++)
    expect(await deliver(box.smtp, { from: 'office@bank.test', to: ada.email, raw: forged })).toMatch(/^550 5\.7\.26 /)
  // a return path that writes to a return path, and to itself
  for (const from of [one, two, '']) {
    for (const to of [one, two])
      await deliver(box.smtp, { from, to, raw: bounce([{ address: 'ann@away.test', status: '5.1.1' }]) })
    await deliver(box.smtp, { from, to: [one, two], raw: message({ 'Auto-Submitted': 'auto-replied' }, 'Away\n') })
    await deliver(box.smtp, { from, to: ['dmarc@pillarbox.test', 'tlsrpt@pillarbox.test', one], raw: 'no report' })
  }
  expect(outgoing()).toEqual(before)
  // each was one of these, by what came to a return path since the restart
  const counted = async (): Promise<unknown> =>
    [...(await box.app.metrics.text()).matchAll(/^pillarbox_returned_total\{outcome="(\w+)"\} (\d+)$/gm)].map(
      ([, outcome, count]) => [outcome, Number(count)],
    )
  // the last is counted after its answer
  await expect.poll(counted).toEqual([
    ['bounced', 2],
    ['automatic', 6],
    ['unknown', 3],
    ['idle', 4],
  ])
})

function returned(path: string, raw: string | Buffer): Promise<string> {
  return deliver(box.smtp, { from: '', to: path, raw })
}

async function shown({ id }: Sent, owner = ada): Promise<Email> {
  return (await box.call<Email>('GET', `/v1/identities/${owner.id}/emails/${id}`)).body
}

async function told(type: string, { id }: Sent): Promise<{ data: Email }[]> {
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/events?type=${type}&limit=200`)
  return body.data.filter((event) => event.data.id === id) as { data: Email }[]
}

function suppressed({ id }: Sent): unknown[] {
  return rows(box, `SELECT email, source, reason FROM suppressions WHERE email_id = '${id}' ORDER BY seq`).map((row) => ({
    ...row,
  }))
}

interface Block {
  address: string
  status: string
  action?: string
  original?: string
  words?: string
}

/** A delivery status notification in the manner of Postfix. */
function bounce(blocks: Block[], messageId = '<m@pillarbox.test>'): string {
  const groups = blocks.map(
    ({ address, status, action = 'failed', original, words = `550 ${status} <${address}>: told you so` }) => {
      const first = original === undefined ? '' : `Original-Recipient: rfc822;${original}\n`
      return `${first}Final-Recipient: rfc822; ${address}\nAction: ${action}\nStatus: ${status}\nDiagnostic-Code: smtp; ${words}\n`
    },
  )
  return reportOf('delivery-status', 'Undelivered Mail Returned to Sender', [
    'Content-Type: text/plain\n\nIt did not go well.\n',
    `Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.away.test\n\n${groups.join('\n')}`,
    `Content-Type: text/rfc822-headers\n\nFrom: ada@pillarbox.test\nMessage-ID: ${messageId}\n`,
  ])
}

function complaint({
  from,
  type = 'abuse',
  returned: back = 'Subject: Figures\r\n',
}: {
  from: string
  type?: string
  returned?: string
}): string {
  return reportOf('feedback-report', 'Abuse report', [
    'Content-Type: text/plain\n\nSomebody pressed a button.\n',
    `Content-Type: message/feedback-report\n\nFeedback-Type: ${type}\nUser-Agent: Loop/1.0\nVersion: 1\nOriginal-Mail-From: <${from}>\n`,
    `Content-Type: message/rfc822\n\n${back}\nHello\n`,
  ])
}

function reportOf(type: string, subject: string, parts: string[]): string {
  const head = { From: 'MAILER-DAEMON@mx.away.test', Subject: subject, 'MIME-Version': '1.0' }
  const body = parts.map((part) => `--=_b\n${part}\n`).join('')
  return message({ ...head, 'Content-Type': `multipart/report; report-type=${type}; boundary="=_b"` }, `${body}--=_b--\n`)
}
