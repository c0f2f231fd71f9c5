import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { deliver } from '../support/appliance.ts'
import { Dialogue, sendInPieces } from '../support/smtp.ts'
import { smuggled, smugglers } from '../support/smuggling.ts'
import {
  base64,
  greeted,
  loggedIn,
  newKey,
  office,
  type Office,
  openOffice,
  outbound,
  plain,
  submit,
} from '../support/submission.ts'

const ada = 'ada@pillarbox.test'
const raw = 'From: ada@pillarbox.test\r\nSubject: Hello\r\n\r\nHi.\r\n'

let here: Office
let close: () => Promise<void>
let sent = 0
beforeAll(async () => {
  ;({ here, close } = await openOffice({ PILLARBOX_SUBMISSION__MAX_FAILED_LOGINS: '1000' }))
  await here.box.call('POST', '/v1/identities', { name: 'Bob' })
  await here.box.call('POST', '/v1/identities', { name: 'Kim' })
})
afterAll(() => close())
// whatever a test tries, nothing may have been taken but what it says
afterEach(async () => {
  const taken = (await outbound(here)).length
  if (taken !== sent) throw new Error(`${taken} messages were taken, and ${sent} should be`)
})

describe('the sender', () => {
  test.each([
    ['ada@pillarbox.test', /^250 /],
    ['ADA@Pillarbox.Test', /^250 /],
    ['ada+tag@pillarbox.test', /^250 /],
    ['"ada"@pillarbox.test', /^250 /],
    ['', /^553 5\.7\.1 /],
    ['bob@pillarbox.test', /^553 5\.7\.1 .*ada@pillarbox\.test/],
    ['bob+ada@pillarbox.test', /^553 5\.7\.1 /],
    ['postmaster@pillarbox.test', /^553 5\.7\.1 /],
    ['bounce+abc@pillarbox.test', /^553 5\.7\.1 /],
    ['nobody@pillarbox.test', /^553 5\.7\.1 /],
    ['ada@elsewhere.test', /^553 5\.7\.1 /],
    ['ada@sub.pillarbox.test', /^553 5\.7\.1 /],
    ['ada', /^501 /],
    ['ada@pillarbox.test@elsewhere.test', /^501 /],
    ['"ada@pillarbox.test"@elsewhere.test', /^5/],
    ['ada@[127.0.0.1]', /^553 5\.7\.1 /],
    ['@elsewhere.test:ada@pillarbox.test', /^250 /],
  ])('<%s> is answered %s', async (sender, answer) => {
    const client = await loggedIn(here)
    expect(await client.say(`MAIL FROM:<${sender}>`)).toMatch(answer)
    client.destroy()
  })
})

describe('the author', () => {
  test.each([
    'From: Ada <ada@pillarbox.test>',
    'From: "Ada, again" <ADA+tag@pillarbox.test> (at work)',
    'from : ada@pillarbox.test',
    'From:\r\n =?utf-8?q?Ad=C3=A4?=\r\n\t<ada@pillarbox.test>',
    'From: "bob@pillarbox.test" <ada@pillarbox.test>',
    'From: Ada <ada@pillarbox.test>\r\nSender: bob@pillarbox.test\r\nReply-To: a@elsewhere.test, b@elsewhere.test',
  ])('may be %j', async (field) => {
    const client = await loggedIn(here)
    expect(await submit(client, { raw: `${field}\r\nSubject: x\r\n\r\nx\r\n` })).toMatch(/^250 /)
    sent++
    client.destroy()
  })

  test.each([
    ['Subject: none'],
    ['From:'],
    ['From: Ada'],
    ['From: bob@pillarbox.test'],
    // the Kelvin sign, a k in lower case: not the same mailbox to others
    ['From: \u212Aim@pillarbox.test', 'kim@pillarbox.test'],
    ['From: Ada <bob@pillarbox.test>'],
    ['From: ada@elsewhere.test'],
    ['From: <ada@pillarbox.test> <bob@pillarbox.test>'],
    ['From: ada@pillarbox.test <bob@pillarbox.test>'],
    ['From: bob@pillarbox.test <ada@pillarbox.test>'],
    ['From: ada@pillarbox.test, bob@pillarbox.test'],
    ['From: bob@pillarbox.test, ada@pillarbox.test'],
    ['From: ada@pillarbox.test\r\nFrom: bob@pillarbox.test'],
    ['From: ada@pillarbox.test\r\nfrom : bob@pillarbox.test'],
    ['From: bob@pillarbox.test\r\nFrom: ada@pillarbox.test'],
    ['From: us: ada@pillarbox.test;'],
    ['From: us: ada@pillarbox.test, bob@pillarbox.test;'],
    ['From: (a(b)<ada@pillarbox.test>) bob@pillarbox.test'],
    ['From: (bob@pillarbox.test) ada@pillarbox.test'],
    ['From: "<bob@pillarbox.test>" ada@pillarbox.test'],
    ['From: =?utf-8?q?bob=40pillarbox.test?='],
    ['From: =?utf-8?q?ada=40pillarbox.test?= <bob@pillarbox.test>'],
    ['From: ada@pillarbox.test\\@elsewhere.test'],
    ['From: <@elsewhere.test:ada@pillarbox.test>'],
    ['From: ada@pillarbox.test bob@pillarbox.test'],
    [' From: bob@pillarbox.test\r\nFrom: ada@pillarbox.test'],
    ['no field at all\r\nFrom: ada@pillarbox.test'],
    ['From ada@pillarbox.test Sat Nov 21 10:00:00 2026\r\nFrom: ada@pillarbox.test'],
    ['From: ada@pillarbox.test\r\nno field at all'],
    ['X: y\r\n: empty name\r\nFrom: ada@pillarbox.test'],
  ])('may not be %j', async (field, user = ada) => {
    const client = await loggedIn(here, { user })
    const octets = Buffer.from(`${field}\r\nX-Last: x\r\n\r\nx\r\n`)
    expect(await submit(client, { from: user, raw: octets })).toMatch(/^55[34] 5\.(7\.1|6\.0) /)
    // the session goes on
    expect(await client.say('NOOP')).toMatch(/^250 /)
    client.destroy()
  })

  test('is looked for in the header alone', async () => {
    const client = await loggedIn(here)
    for (const octets of ['\r\nFrom: ada@pillarbox.test\r\n', 'x\r\n', '', 'Subject: x\r\n\r\nFrom: ada@pillarbox.test\r\n']) {
      expect(await submit(client, { raw: octets })).toMatch(/^55[34] 5\.(7\.1|6\.0) /)
    }
    client.destroy()
  })
})

describe('a recipient', () => {
  test.each([
    ['bob@elsewhere.test', /^250 /],
    ['bob@pillarbox.test', /^250 /],
    ['postmaster', /^250 /],
    ['odd!local%part@elsewhere.test', /^250 /],
    ['bob@xn--bcher-kva.test', /^250 /],
    ['', /^501 /],
    ['bob', /^501 /],
    ['bob@elsewhere', /^553 5\.1\.3 /],
    ['bob@[192.0.2.1]', /^553 5\.1\.3 /],
    ['bob@192.0.2.1', /^553 5\.1\.3 /],
    ['bob@elsewhere..test', /^553 5\.1\.3 /],
    ['b..b@elsewhere.test', /^553 5\.1\.3 /],
    [`${'b'.repeat(65)}@elsewhere.test`, /^553 5\.1\.3 /],
    ['bób@elsewhere.test', /^553 5\.6\.7 /],
    ['a@b@elsewhere.test', /^501 /],
  ])('<%s> is answered %s', async (recipient, answer) => {
    const client = await loggedIn(here)
    await client.say(`MAIL FROM:<${ada}>`)
    expect(await client.say(`RCPT TO:<${recipient}>`)).toMatch(answer)
    client.destroy()
  })

  test('that is suppressed is named, and the others are written to', async () => {
    await here.box.call('POST', '/v1/suppressions', { email: 'gone@elsewhere.test' })
    const client = await loggedIn(here)
    await client.say(`MAIL FROM:<${ada}>`)
    expect(await client.say('RCPT TO:<Gone@elsewhere.test>')).toMatch(/^550 5\.7\.1 gone@elsewhere\.test is suppressed/i)
    expect(await client.say('DATA')).toMatch(/^503 /)
    expect(await client.say('RCPT TO:<bob@elsewhere.test>')).toMatch(/^250 /)
    await client.say('DATA')
    client.send(raw)
    expect(await client.say('.')).toMatch(/^250 /)
    sent++
    client.destroy()
  })

  test('beyond the hundredth waits for another message', async () => {
    const client = await loggedIn(here)
    await client.say(`MAIL FROM:<${ada}>`)
    for (let count = 0; count < 100; count++) expect(await client.say(`RCPT TO:<to${count}@elsewhere.test>`)).toMatch(/^250 /)
    expect(await client.say('RCPT TO:<to100@elsewhere.test>')).toMatch(/^452 4\.5\.3 /)
    client.destroy()
  })

  test('elsewhere is refused while no mail may leave', async () => {
    const own = await office({ PILLARBOX_OUTBOUND__MODE: 'none' })
    const client = await loggedIn(own)
    await client.say(`MAIL FROM:<${ada}>`)
    expect(await client.say('RCPT TO:<bob@elsewhere.test>')).toMatch(/^550 5\.7\.1 bob@elsewhere\.test is not on this box/)
    expect(await client.say('RCPT TO:<ada@pillarbox.test>')).toMatch(/^250 /)
    client.destroy()
  })

  test('elsewhere is refused while the domain of the sender is not verified', async () => {
    const own = await office({}, undefined, false)
    const client = await loggedIn(own)
    await client.say(`MAIL FROM:<${ada}>`)
    expect(await client.say('RCPT TO:<bob@elsewhere.test>')).toMatch(/^550 5\.7\.1 pillarbox\.test is not verified/)
    expect(await client.say('RCPT TO:<ada@pillarbox.test>')).toMatch(/^250 /)
    client.destroy()
  })
})

describe('nobody relays', () => {
  const transaction = [`MAIL FROM:<${ada}>`, 'RCPT TO:<bob@elsewhere.test>', 'DATA']

  test.each([
    ['in the clear', async () => Dialogue.hello(here.port())],
    ['under STARTTLS', async () => greeted(here.port())],
    ['under implicit TLS', async () => greeted(here.port('tls'), 'tls')],
    [
      'after a failed login',
      async () => {
        const client = await greeted(here.port())
        await client.say(plain(ada, 'wrong'))
        return client
      },
    ],
    [
      'after half a login',
      async () => {
        const client = await greeted(here.port())
        await client.say('AUTH LOGIN')
        await client.say(base64(ada))
        await client.say('*')
        return client
      },
    ],
    [
      'after RSET and a second EHLO',
      async () => {
        const client = await greeted(here.port())
        await client.say('RSET')
        await client.say('HELO client.test')
        return client
      },
    ],
  ])('who has not logged in, %s', async (_, connect) => {
    const client = await connect()
    const answers = []
    for (const command of [...transaction, 'MAIL FROM:<>', 'RCPT TO:<bob@pillarbox.test>', 'BDAT 3 LAST'])
      answers.push(await client.say(command))
    expect(answers.map((answer) => answer.slice(0, 3))).toEqual(['530', '503', '503', '530', '503', '500'])
    client.destroy()
  })

  test('in one packet with a login that fails, whatever stands behind it', async () => {
    const client = await greeted(here.port('tls'), 'tls')
    const before = client.transcript.length
    client.send(`${[plain(ada, 'wrong'), ...transaction].join('\r\n')}\r\n${raw}.\r\nQUIT\r\n`)
    await client.end()
    expect(client.transcript.slice(before)).not.toMatch(/^(?:250|354) /m)
  })

  test('at the port for strangers, where no login is known', async () => {
    expect(await deliver(here.box.smtp, { from: ada, to: 'bob@elsewhere.test', raw })).toMatch(/^550 5\.7\.1 /)
    const client = await Dialogue.hello(here.box.smtp.port)
    expect(await client.say(plain(ada, here.box.key))).toMatch(/^500 /)
    client.destroy()
  })

  test('a session forgets its transaction with STARTTLS, and a login cannot be made before it', async () => {
    const client = await Dialogue.hello(here.port())
    await client.say(plain(ada, here.box.key))
    await client.say('STARTTLS')
    await client.upgrade()
    await client.say('EHLO client.test')
    expect(await client.say(transaction[0]!)).toMatch(/^530 /)
    client.destroy()
  })

  test.each([
    ['at once', ''],
    ['after 250 others', 'NOOP\r\n'.repeat(250)],
  ])('commands injected behind STARTTLS, sent %s, never run', async (_, padding) => {
    const client = await Dialogue.hello(here.port())
    const injected = ['EHLO evil.test', plain(ada, here.box.key), ...transaction].join('\r\n')
    client.send(`STARTTLS\r\n${padding}${injected}\r\n`)
    expect(await client.reply()).toMatch(/^220 /)
    await client.upgrade()
    const before = client.transcript.length
    await wait(50)
    expect(client.transcript.slice(before)).toBe('')
    await client.say('EHLO client.test')
    expect(await client.say(transaction[0]!)).toMatch(/^530 /)
    client.destroy()
  })
})

describe.each(['one packet', 'an octet a packet'])('a message hidden behind another, in %s', (way) => {
  test.each(smugglers.map((sequence) => [JSON.stringify(sequence), sequence]))('by %s is never taken', async (_, sequence) => {
    const client = await loggedIn(here)
    for (const command of [`MAIL FROM:<${ada}>`, 'RCPT TO:<bob@elsewhere.test>', 'DATA']) await client.say(command)
    const before = client.transcript.length
    const hidden = smuggled(ada, 'bob@elsewhere.test', 'From: ada@pillarbox.test\r\nSubject: smuggled')
    const octets = Buffer.from(`From: ada@pillarbox.test\r\nSubject: a\r\n\r\nbody${sequence}${hidden}QUIT\r\n`)
    await sendInPieces(client, way === 'one packet' ? [octets] : Array.from(octets, (octet) => Buffer.from([octet])))
    await client.end()
    const said = client.transcript.slice(before)
    // one dot that was stuffed is a line of the message
    if (sequence === '\r\n..\r\n') sent++
    else expect(said).toMatch(/^550 5\.6\.0 /)
    expect(said.match(/^(?:250|354) /gm) ?? []).toHaveLength(sequence === '\r\n..\r\n' ? 1 : 0)
  })
})

describe('who is rude', () => {
  test('is turned away: too many connections, errors, commands, or too long a silence', async () => {
    const own = await office({
      PILLARBOX_SMTP__MAX_CONNECTIONS_PER_ADDRESS: '2',
      PILLARBOX_SMTP__MAX_ERRORS: '3',
      PILLARBOX_SMTP__MAX_COMMANDS: '10',
      PILLARBOX_SMTP__IDLE_TIMEOUT: '1 s',
    })
    for (const door of ['starttls', 'tls'] as const) {
      const [first, second] = [await loggedIn(own, { door }), await loggedIn(own, { door })]
      const third = await Dialogue.connect(own.port(door))
      await third.end()
      expect(third.transcript).toMatch(/^421 4\.7\.0 /)
      for (let count = 0; count < 3; count++) expect(await first.say('FOO')).toMatch(/^500 /)
      expect(await first.say('FOO')).toMatch(/^421 4\.7\.0 /)
      for (let count = 0; count < 20 && !second.closed; count++) await second.say('NOOP')
      expect(second.transcript).toMatch(/^421 4\.7\.0 /m)
      await Promise.all([first.end(), second.end()])
      const idle = await loggedIn(own, { door })
      expect(await idle.reply()).toMatch(/^421 /)
      await idle.end()
    }
  })

  test('or breaks off a handshake, sends nonsense or nothing for one, is gone in the end; others are served', async () => {
    const own = await office({ PILLARBOX_SMTP__IDLE_TIMEOUT: '1 s' })
    const clients: Dialogue[] = []
    for (let count = 0; count < 15; count++) {
      const client = await Dialogue.connect(own.port('tls'))
      if (count % 5 === 0) client.send('EHLO client.test\r\n')
      if (count % 5 === 1) client.send(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]))
      if (count % 5 === 2) client.reset()
      if (count % 5 === 3) client.send(Buffer.alloc(70_000, count))
      clients.push(client)
    }
    const good = await loggedIn(own, { door: 'tls' })
    expect(await submit(good, { raw })).toMatch(/^250 /)
    await Promise.all([...clients, good].map((client) => client.end()))
    expect(clients.map(({ transcript }) => transcript).join('')).not.toMatch(/^(?:220|250)/m)
  })

  test('or talks before the greeting under TLS is told so', async () => {
    const own = await office({ PILLARBOX_SMTP__GREETING_DELAY: '2 s' })
    const client = await Dialogue.connect(own.port('tls'))
    await client.upgrade()
    expect(await client.say('EHLO client.test')).toMatch(/^421 .*too soon/)
    await client.end()
  })
})

test('nothing is taken while the disk is as good as full', async () => {
  const own = await office()
  own.box.env['PILLARBOX_MIN_FREE'] = '1000000 GiB'
  await own.box.restart()
  const client = await loggedIn(own)
  expect(await client.say(`MAIL FROM:<${ada}>`)).toMatch(/^452 4\.3\.1 /)
  client.destroy()
})

test('a key of another identity cannot borrow this one, even after its own login', async () => {
  const { body } = await here.box.call('GET', '/v1/identities')
  const bob = (body.data as { id: string; name: string }[]).find(({ name }) => name === 'Bob')!
  const { key } = await newKey(here.box, { identity_id: bob.id })
  const client = await loggedIn(here, { user: 'bob@pillarbox.test', key })
  expect(await client.say(`MAIL FROM:<${ada}>`)).toMatch(/^553 5\.7\.1 /)
  expect(await submit(client, { from: 'bob@pillarbox.test', raw })).toMatch(/^553 5\.7\.1 /)
  client.destroy()
})
