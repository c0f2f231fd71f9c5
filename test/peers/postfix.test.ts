import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { message } from '../support/appliance.ts'
import { absent, peer } from '../support/peer.ts'
import { run, succeed } from '../support/program.ts'
import { arrived, boxWithAda, identity, keptFor, sha } from './kept.ts'
import { Postfix } from './postfix.ts'

const master = peer('master', 'apt-get install postfix')
const smtpSource = peer('smtp-source', 'apt-get install postfix')
const isRoot = process.getuid?.() === 0
if (!isRoot) absent('postfix', 'Postfix starts only as root')
const possible =
  isRoot && master !== undefined && smtpSource !== undefined && peer('setpriv', 'apt-get install util-linux') !== undefined

const text = { To: 'Ada <ada@pillarbox.test>', 'Content-Type': 'text/plain; charset=utf-8' }
const eightBit = { ...text, 'MIME-Version': '1.0', 'Content-Transfer-Encoding': '8bit' }

const messages: [name: string, mail: { raw: string; from?: string; parameters?: string }][] = [
  ['7-bit', { raw: message({ ...text, Subject: 'Plain' }, 'Hello\n') }],
  ['8-bit', { raw: message({ ...eightBit, Subject: 'Eight' }, 'Grüße aus 東京\n'), parameters: ' BODY=8BITMIME' }],
  [
    'internationalized',
    {
      from: 'bücher@versand.test',
      raw: message({ ...eightBit, From: 'Jürgen <bücher@versand.test>', Subject: 'Übergröße' }, 'Grüße\n'),
      parameters: ' BODY=8BITMIME SMTPUTF8',
    },
  ],
  ['long', { raw: message({ ...text, Subject: 'Long' }, `${randomBytes(54).toString('base64')}\n`.repeat(43_000)) }],
  ['dotted', { raw: message({ ...text, Subject: 'Dots' }, '.\n..\n...\n. a\n.b\n\n.\n') }],
  ['blank', { raw: message({ ...text, Subject: 'Blanks' }, 'a  \n \n\t\n\n\nb \t \n\n\n\n') }],
  ['wide', { raw: message({ ...text, Subject: 'Wide' }, `${'x'.repeat(998)}\n${'.'.repeat(997)}\n${'y '.repeat(499)}\n`) }],
  ['folded', { raw: message({ ...text, Subject: `a\r\n b\r\n\tc  `, 'X-Odd': '' }, 'Hello\n') }],
]

describe.runIf(possible)('Postfix', { timeout: 60_000 }, () => {
  test('every octet it sends is kept, under TLS and in the clear', async () => {
    const { box, ada } = await boxWithAda()
    const clear = await identity(box, 'Clear')
    const postfix = await Postfix.start(master!, box.smtp)
    for (const [name, mail] of messages) {
      for (const [to, owner] of [
        ['ada@pillarbox.test', ada],
        ['clear@pillarbox.test', clear],
      ] as const) {
        const sent = await postfix.show({ ...mail, to: [to] })
        const [kept] = await keptFor(box, owner)
        expect([name, sha(kept!.octets)]).toEqual([name, sha(sent)])
        // what Postfix put before is one Received field; the rest is what we wrote
        const own = sent.length - Buffer.byteLength(mail.raw)
        expect(sent.toString('latin1', 0, own)).toMatch(/^Received: from client\.peer\.test [^\r]+(?:\r\n\t[^\r]+)*\r\n$/)
        expect([name, sha(kept!.octets.subarray(own))]).toEqual([name, sha(mail.raw)])
        expect(kept!.email).toMatchObject({ to, from: mail.from ?? 'sender@sender.test', parse_error: null, spam: false })
        expect(kept!.trace).toContain('Received: from relay.peer.test ([127.0.0.1])')
        const protocol = mail.parameters?.includes('SMTPUTF8') ? 'UTF8SMTP' : 'ESMTP'
        expect(kept!.trace).toMatch(
          owner === ada
            ? new RegExp(`\\(using TLSv1\\.3 with cipher TLS_[A-Z0-9_]+\\)\\r\\n\\tby pillarbox\\.test with ${protocol}S id`)
            : new RegExp(`\\tby pillarbox\\.test with ${protocol} id`),
        )
        await box.call('DELETE', `/v1/identities/${owner}/emails/${kept!.email.id}`)
      }
    }
    expect(postfix.log).toMatch(/TLS connection established to 127\.0\.0\.1\[127\.0\.0\.1\]:\d+: TLSv1\.3/)
    expect(postfix.log).not.toMatch(/(?:warning|fatal|panic): /)
  })

  test('what it cannot deliver bounces from its side, and the sender is told why', async () => {
    const { box, ada } = await boxWithAda({ PILLARBOX_SMTP__SIZE: '100 kB' })
    await identity(box, 'Blunt')
    const postfix = await Postfix.start(master!, box.smtp)
    const hello = message({ ...text, Subject: 'Hello' }, 'Hello\n')
    const large = message({ ...text, Subject: 'Large' }, `${'x'.repeat(70)}\n`.repeat(2000))
    const from = 'ada@pillarbox.test'

    const unknown = await postfix.take({ from, to: ['nobody@pillarbox.test'], raw: hello })
    await postfix.logged(new RegExp(`${unknown}: to=<nobody@.*dsn=5\\.1\\.1, status=bounced .*said: 550 5\\.1\\.1 `))
    const foreign = await postfix.take({ from, to: ['someone@elsewhere.test'], raw: hello })
    await postfix.logged(new RegExp(`${foreign}: to=<someone@.*dsn=5\\.7\\.1, status=bounced .*said: 550 5\\.7\\.1 `))
    // one that heeds the SIZE we announce, and one that does not
    const heeded = await postfix.take({ from, to: ['ada@pillarbox.test'], raw: large })
    await postfix.logged(new RegExp(`${heeded}: .*dsn=5\\.3\\.4, status=bounced \\(message size \\d+ exceeds size limit 100000 `))
    const refused = await postfix.take({ from, to: ['blunt@pillarbox.test'], raw: large })
    await postfix.logged(new RegExp(`${refused}: .*dsn=5\\.3\\.4, status=bounced .*said: 552 5\\.3\\.4 `))

    const reports = await keptFor(box, ada, 4)
    for (const { email, trace } of reports) {
      expect(email).toMatchObject({ from: 'MAILER-DAEMON@relay.peer.test', automated: true, parse_error: null })
      expect(trace).toMatch(/^Return-Path: <>\r\n/)
    }
    expect(reports.map(({ email }) => /(?:550|552) 5\.\d\.\d/.exec(email.body_text ?? '')?.[0] ?? 'size').toSorted()).toEqual([
      '550 5.1.1',
      '550 5.7.1',
      '552 5.3.4',
      'size',
    ])
  })

  test('one transaction for several recipients gives each a copy, and bounces only for the unknown', async () => {
    const { box, ada } = await boxWithAda()
    const others = await Promise.all(['Bob', 'Eve', 'Mallory'].map((name) => identity(box, name)))
    const postfix = await Postfix.start(master!, box.smtp)
    const names = ['ada', 'bob+one', 'bob+two', 'nobody', 'eve', 'mallory']
    const raw = message({ ...text, Subject: 'To all', 'Message-ID': '<all@sender.test>' }, 'Hello all\n')
    const id = await postfix.take({ to: names.map((name) => `${name}@pillarbox.test`), raw })
    await postfix.logged(new RegExp(`${id}: to=<nobody@.*status=bounced .*said: 550 5\\.1\\.1 `))
    for (const name of names.filter((one) => one !== 'nobody'))
      await postfix.logged(new RegExp(`${id}: to=<${name.replace('+', '\\+')}@.*status=sent \\(250 2\\.0\\.0 `))
    const copies = [ada, ...others].map((owner, index) => keptFor(box, owner, index === 1 ? 2 : 1))
    const kept = (await Promise.all(copies)).flat()
    const reached = kept.map(({ email }) => email.to.replace('@pillarbox.test', ''))
    expect(reached.toSorted()).toEqual(['ada', 'bob+one', 'bob+two', 'eve', 'mallory'])
    expect(new Set(kept.map(({ octets }) => sha(octets))).size).toBe(1)
    expect(kept[0]!.octets.toString().endsWith(raw)).toBe(true)
    // one transaction: all were told the same queue id
    const told = [...postfix.log.matchAll(/status=sent \(250 2\.0\.0 Ok: queued as ([\w.]+)\)/g)].map((found) => found[1])
    expect(new Set(told).size).toBe(1)
  })

  test('what the box puts off arrives when Postfix comes again', async () => {
    const { box, ada } = await boxWithAda()
    const postfix = await Postfix.start(master!, box.smtp)
    await box.call('PATCH', `/v1/identities/${ada}`, { status: 'suspended' })
    const raw = message({ ...text, Subject: 'Later', 'Message-ID': '<later@sender.test>' }, 'Hello\n')
    const id = await postfix.take({ to: ['ada@pillarbox.test'], raw })
    await postfix.logged(new RegExp(`${id}: .*dsn=4\\.2\\.1, status=deferred .*said: 450 4\\.2\\.1 `))
    await box.call('PATCH', `/v1/identities/${ada}`, { status: 'active' })
    expect(await arrived(box, ada, 0)).toEqual([])
    await postfix.retry()
    expect(await arrived(box, ada, 1)).toMatchObject([{ subject: 'Later' }])
  })

  test('a restart of the box in the middle of a hundred messages loses none and repeats none', async () => {
    const { box, ada } = await boxWithAda()
    box.env['PILLARBOX_SMTP__LISTEN'] = `${box.smtp.host}:${box.smtp.port}`
    const postfix = await Postfix.start(master!, box.smtp)
    const load = ['-s', '4', '-l', '2000', '-f', 'sender@sender.test', '-t', 'ada@pillarbox.test']
    const sending = succeed(smtpSource!, [...load, '-m', '100', `unix:${postfix.entrance}`])
    await postfix.logged(/status=sent/, 10)
    await box.restart()
    await sending
    // it was in the middle
    await postfix.logged(/status=deferred/)
    const rows = await vi.waitFor(
      async () => {
        await postfix.retry()
        const { body } = await box.call('GET', `/v1/identities/${ada}/emails?limit=200`)
        if (body.data.length < 100) throw new Error(`${body.data.length} of 100 messages came:\n${postfix.log}`)
        return body.data as { message_id: string }[]
      },
      { timeout: 100_000, interval: 500 },
    )
    expect(rows).toHaveLength(100)
    expect(new Set(rows.map((row) => row.message_id)).size).toBe(100)
    await postfix.logged(/status=sent/, 100)
  })

  test('two hundred messages at once all arrive, each once', async () => {
    const { box, ada } = await boxWithAda()
    const postfix = await Postfix.start(master!, box.smtp)
    const load = ['-s', '8', '-l', '2000', '-f', 'sender@sender.test', '-t', 'ada@pillarbox.test']
    await succeed(smtpSource!, [...load, '-m', '200', `unix:${postfix.entrance}`])
    const rows = await arrived(box, ada, 200)
    expect(new Set(rows.map((row) => row.message_id)).size).toBe(200)
    expect(rows).toHaveLength(200)
    await postfix.logged(/status=sent/, 200)
    expect(postfix.log.match(/status=sent/g)).toHaveLength(200)
    expect(postfix.log).not.toMatch(/status=(?:deferred|bounced)/)
  })
})

test.runIf(smtpSource !== undefined)('two hundred messages of smtp-source, several on one connection, all arrive', async () => {
  const { box, ada } = await boxWithAda()
  const load = ['-4', '-s', '8', '-l', '2000', '-d', '-f', 'sender@sender.test', '-t', 'ada@pillarbox.test']
  const sent = await run(smtpSource!, [...load, '-m', '200', `inet:${box.smtp.host}:${box.smtp.port}`])
  expect(sent).toMatchObject({ code: 0, errors: '' })
  // each was answered with 250 before it ended: nothing to wait for
  const { body } = await box.call('GET', `/v1/identities/${ada}/emails?limit=200`)
  expect(new Set(body.data.map((row) => row.message_id as string)).size).toBe(200)
})
