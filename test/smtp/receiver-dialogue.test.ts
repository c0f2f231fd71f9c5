import { createHash, randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { storageFull } from '../../src/core/fault.ts'
import { Refusal } from '../../src/smtp/replies.ts'
import { type Running, startReceiver } from '../support/receiver.ts'
import { Dialogue, sendInPieces } from '../support/smtp.ts'

const message = 'From: a@client.test\r\nSubject: hello\r\n\r\nhi\r\n'

let box: Running
beforeEach(async () => {
  box = await startReceiver()
})
afterEach(() => box.receiver.stop())

async function transaction(...lines: string[]): Promise<string[]> {
  const client = await Dialogue.hello(box.port)
  const replies: string[] = []
  for (const line of lines) replies.push(await client.say(line))
  client.destroy()
  return replies
}

describe('a conversation', () => {
  test('is greeted by host name and told what we can do, and nothing we do not', async () => {
    const client = await Dialogue.connect(box.port)
    expect(await client.reply()).toBe('220 box.test ESMTP')
    const features = (await client.say('EHLO client.test')).split('\r\n').map((line) => line.slice(4))
    expect(features).toEqual([
      'box.test',
      'PIPELINING',
      '8BITMIME',
      'SMTPUTF8',
      'ENHANCEDSTATUSCODES',
      'STARTTLS',
      'SIZE 1048576',
    ])
    expect(await client.say('QUIT')).toMatch(/^221 2\.0\.0/)
    await client.end()
  })

  test('hands a message over for the account of the first recipient that was taken', async () => {
    box.deliveryTarget.checkRecipient = async (address) => {
      if (address.startsWith('user1')) throw new Refusal(550, '5.1.1', 'No such mailbox')
      return `account of ${address}`
    }
    const client = await Dialogue.hello(box.port)
    for (const line of ['MAIL FROM:<a@client.test>', 'RCPT TO:<user1@box.test>', 'RCPT TO:<user2@box.test>'])
      await client.say(line)
    expect(await client.say('RCPT TO:<user3@box.test>')).toMatch(/^250 /)
    expect(await client.say('DATA')).toMatch(/^354 /)
    expect(await client.say(`${message}.`)).toMatch(/^250 /)
    expect(await client.begin(['user4@box.test'], '')).toMatch(/^354 /)
    expect(await client.say(`${message}.`)).toMatch(/^250 /)
    expect(box.deliveryTarget.kept.map(({ account }) => account)).toEqual([
      'account of user2@box.test',
      'account of user4@box.test',
    ])
    client.destroy()
  })

  test('keeps a message and names it only when it is kept', async () => {
    const disk = Promise.withResolvers<void>()
    box.deliveryTarget.before = () => disk.promise
    const client = await Dialogue.hello(box.port)
    expect(await client.begin(['user@box.test', 'user2@BOX.test'], ' SIZE=100 BODY=8BITMIME')).toMatch(/^354 /)
    client.send(`${message}.\r\n`)
    const beforeKept = await Promise.race([client.reply(), new Promise((resolve) => setTimeout(resolve, 100, 'silence'))])
    expect(beforeKept).toBe('silence')
    disk.resolve()
    await client.say('NOOP')
    expect(client.transcript).toContain('250 2.0.0 Ok: queued as queue-1\r\n')
    const [kept] = box.deliveryTarget.kept
    expect(kept?.raw.toString()).toBe(message)
    expect(kept?.envelope).toMatchObject({
      remote_address: '127.0.0.1',
      helo: 'client.test',
      mail_from: 'sender@client.test',
      recipients: ['user@box.test', 'user2@box.test'],
      smtputf8: false,
      esmtp: true,
      tls: null,
    })
    client.destroy()
  })

  test('takes many messages, each with its own id and nothing of the one before', async () => {
    const client = await Dialogue.hello(box.port)
    for (let count = 1; count <= 30; count++)
      expect(await client.deliver(message, [`user${count}@box.test`])).toContain(`queue-${count}`)
    expect(box.deliveryTarget.kept.map(({ envelope }) => envelope.recipients)).toEqual(
      Array.from({ length: 30 }, (_, index) => [`user${index + 1}@box.test`]),
    )
    expect(new Set(box.deliveryTarget.kept.map(({ envelope }) => envelope.session)).size).toBe(30)
    expect(box.receiver.stats).toMatchObject({ messages: 30, octets: 30 * message.length, connections: 1 })
    client.destroy()
  })

  test('may be pipelined', async () => {
    const client = await Dialogue.hello(box.port)
    client.send('MAIL FROM:<a@client.test>\r\nRCPT TO:<user@box.test>\r\nRCPT TO:<nobody@box.test>\r\nDATA\r\n')
    expect(
      [await client.reply(), await client.reply(), await client.reply(), await client.reply()].map((reply) => reply.slice(0, 9)),
    ).toEqual(['250 2.1.0', '250 2.1.5', '550 5.1.1', '354 End d'])
    client.send(`${message}.\r\nMAIL FROM:<b@client.test>\r\nRSET\r\nQUIT\r\n`)
    expect(await client.reply()).toContain('queue-1')
    expect([await client.reply(), await client.reply(), await client.reply()].map((reply) => reply.slice(0, 3))).toEqual([
      '250',
      '250',
      '221',
    ])
  })

  test('takes the null sender, and HELO', async () => {
    const client = await Dialogue.connect(box.port)
    await client.reply()
    expect(await client.say('HELO old.test')).toBe('250 box.test')
    expect(await client.say('MAIL FROM:<>')).toMatch(/^250 2\.1\.0/)
    await client.say('RCPT TO:<user@box.test>')
    await client.say('DATA')
    expect(await client.say('.')).toMatch(/^250 2\.0\.0/)
    expect(box.deliveryTarget.kept[0]?.envelope).toMatchObject({ mail_from: '', esmtp: false })
    expect(box.deliveryTarget.kept[0]?.raw.length).toBe(0)
    client.destroy()
  })
})

test.each([
  ['VRFY root', /^252 /],
  ['EXPN list', /^500 5\.5\.2/],
  ['HELP', /^50[02] /],
  ['WIZ secret', /^500 5\.5\.2/],
  ['SHELL', /^500 /],
  ['KILL', /^500 /],
  ['ETRN x', /^500 /],
  ['TURN', /^500 /],
  ['XCLIENT ADDR=1.2.3.4', /^5\d\d /],
  ['XFORWARD NAME=x', /^5\d\d /],
  ['AUTH PLAIN AGEAYg==', /^50[0-4] /],
  ['PROXY TCP4 1.2.3.4 5.6.7.8 1 2', /^500 /],
  ['MAILBOX_FULL', /^500 5\.5\.2/],
  ['NOOP', /^250 2\.0\.0/],
  ['RSET', /^250 2\.0\.0/],
  ['RCPT TO:<user@box.test>', /^503 5\.5\.1/],
  ['DATA', /^503 5\.5\.1/],
  ['MAIL FROM:<a@client.test> FOO=BAR', /^555 5\.5\.4/],
  ['MAIL FROM:<a@client.test> RET=FULL', /^555 5\.5\.4/],
  ['MAIL FROM:<a@client.test> AUTH=<>', /^555 5\.5\.4/],
  ['MAIL FROM:<a@client.test> REQUIRETLS', /^555 5\.5\.4/],
  ['MAIL FROM:<a@client.test> SIZE=1 SIZE=2', /^501 5\.5\.4/],
  ['MAIL FROM:<a@client.test> SIZE=-1', /^501 5\.5\.4/],
  ['MAIL FROM:<a@client.test> SIZE=0x10', /^501 5\.5\.4/],
  ['MAIL FROM:<a@client.test> SIZE=1048577', /^552 5\.3\.4/],
  ['MAIL FROM:<a@client.test> SIZE=99999999999999999999', /^552 5\.3\.4/],
  ['MAIL FROM:<a@client.test> SIZE=1048576', /^250 2\.1\.0/],
  ['MAIL FROM:<a@client.test> BODY=BINARYMIME', /^501 /],
  ['MAIL FROM:<ü@client.test>', /^553 5\.6\.7/],
  ['MAIL FROM:<ü@client.test> SMTPUTF8', /^250 /],
  ['MAIL FROM:a@client.test', /^501 5\.1\.7/],
  ['MAIL FROM:<a@[192.0.2.1]>', /^250 /],
  ['MAIL FROM:<a@[192.0.2.999]>', /^553 5\.1\.7/],
  ['MAIL FROM:<a@client.test.>', /^553 5\.1\.7/],
  ['MAIL FROM:<a..b.@client.test>', /^250 /],
])('%s', async (line, reply) => {
  expect(await transaction(line)).toEqual([expect.stringMatching(reply)])
})

test('DATA with a parameter begins no message: what follows is commands', async () => {
  const client = await Dialogue.hello(box.port)
  await client.say('MAIL FROM:<a@client.test>')
  expect(await client.say('RCPT TO:<user@box.test>')).toMatch(/^250 /)
  expect(await client.say('DATA x')).toBe('501 5.5.4 DATA has no parameters')
  expect(await client.say('NOOP')).toMatch(/^250 /)
  // the transaction goes on
  expect(await client.say('data ')).toMatch(/^354 /)
  client.destroy()
})

test('the extensions asked for by a refused MAIL do not outlive it', async () => {
  const client = await Dialogue.hello(box.port)
  await client.say('MAIL FROM:<bad..@> SMTPUTF8 BODY=8BITMIME')
  await client.say('MAIL FROM:<a@x.test.> SMTPUTF8 BODY=8BITMIME')
  expect(await client.deliver(message)).toMatch(/^250 /)
  expect(box.deliveryTarget.kept[0]?.envelope).toMatchObject({ smtputf8: false })
  client.destroy()
})

test.each(['BDAT 60 LAST', ' BDAT 60 LAST', '\tbdat 60', 'BDAT\t60 LAST'])(
  'what follows %j never runs as commands',
  async (bdat) => {
    const client = await Dialogue.hello(box.port)
    client.send(`MAIL FROM:<a@client.test>\r\n${bdat}\r\nRCPT TO:<user@box.test>\r\nDATA\r\n`)
    await client.reply()
    expect(await client.reply()).toMatch(/^500 /)
    expect(await client.reply()).toBe('')
    expect(box.deliveryTarget.asked).toEqual([])
    client.destroy()
  },
)

describe('recipients', () => {
  test.each([
    'user%evil.test@box.test',
    'evil.test!user@box.test',
    '"user@evil.test"@box.test',
    'user@evil.test@box.test',
    'user@[127.0.0.1]',
    'user@[IPv6:::1]',
    'user@box.test.',
    'user@127.0.0.1',
    'user@2130706433',
    'user@evil.test',
    'user@sub.box.test',
    'user@xbox.test',
    'user@box.test\0.evil.test',
    '../../x@box.test',
    '|/bin/sh@box.test',
    '$(id)@box.test',
    '`id`@box.test',
    '"><script>@box.test',
    "'or'1@box.test",
    '.user@box.test',
    'user.@box.test',
    'us..er@box.test',
    '@box.test',
    'user@',
    'user',
    'root',
    '""@box.test',
    '"a b"@box.test',
    `${'a'.repeat(300)}@box.test`,
    'nobody@box.test',
    'us\u200der@box.test',
    'user@ｂｏｘ.test',
    'user@bo\u00adx.test',
    'user@xn--box-hfa.test',
    'user@box.test?',
    'user@b%6fx.test',
    'us\u200ber@box.test',
    'us\u202eer@box.test',
    'us\u00ader@box.test',
    'us\u0085er@box.test',
    'us\ufffder@box.test',
    'us\ufeffer@box.test',
    'us\u2028er@box.test',
    'us\u0001er@box.test',
    'us\x7fer@box.test',
  ])('%j is not taken from anybody', async (recipient) => {
    for (const sender of ['<>', '<user@box.test>', '<a@client.test>']) {
      const [, reply] = await transaction(`MAIL FROM:${sender} SMTPUTF8`, `RCPT TO:<${recipient}>`)
      expect(reply).toMatch(/^5(?:50|53|01) 5\.[17]\.\d /)
    }
    expect(box.receiver.stats.messages).toBe(0)
  })

  test.each([
    ['user@box.test', 'user@box.test'],
    ['user@BOX.Test', 'user@box.test'],
    ['"user"@box.test', 'user@box.test'],
    ['"us\\er"@box.test', 'user@box.test'],
    ['user+tag@box.test', 'user+tag@box.test'],
    ['@one.test,@two.test:user@box.test', 'user@box.test'],
    ['Postmaster', 'postmaster'],
    ['user@xn--bx-5ja.test', 'user@xn--bx-5ja.test'],
    ['user@XN--BX-5JA.test', 'user@xn--bx-5ja.test'],
    ['user@bóx.test', 'user@xn--bx-5ja.test'],
    ['jürgen@box.test', 'jürgen@box.test'],
  ])('%s is looked up as %s', async (written, asked) => {
    box.deliveryTarget.mailboxes.add('user@xn--bx-5ja.test').add('jürgen@box.test')
    const replies = await transaction('MAIL FROM:<a@client.test> SMTPUTF8', `RCPT TO:<${written}>`)
    expect(replies[1]).toMatch(/^250 2\.1\.5/)
    expect(box.deliveryTarget.asked).toEqual([asked])
  })

  test('a parameter is refused, and an address of other letters needs SMTPUTF8', async () => {
    const replies = await transaction(
      'MAIL FROM:<a@client.test>',
      'RCPT TO:<user@box.test> NOTIFY=NEVER',
      'RCPT TO:<jürgen@box.test>',
      'RCPT TO:<user@bóx.test>',
    )
    const needed = expect.stringMatching(/^553 5\.6\.7/)
    expect(replies.slice(1)).toEqual([expect.stringMatching(/^555 5\.5\.4/), needed, needed])
  })

  test('a domain of other letters that is written in ASCII needs nothing', async () => {
    box.deliveryTarget.mailboxes.add('user@xn--bx-5ja.test')
    const replies = await transaction(
      'MAIL FROM:<u@xn--tda.test>',
      'RCPT TO:<user@XN--BX-5JA.test>',
      'RCPT TO:<jürgen@xn--bx-5ja.test>',
    )
    expect(replies).toEqual([
      expect.stringMatching(/^250 /),
      expect.stringMatching(/^250 /),
      expect.stringMatching(/^553 5\.6\.7 /),
    ])
    expect(box.deliveryTarget.asked).toEqual(['user@xn--bx-5ja.test'])
  })

  test('what the mailroom says is passed on', async () => {
    const refusals = [
      new Refusal(450, '4.2.1', 'Suspended'),
      new Refusal(452, '4.2.2', 'Over quota'),
      new Refusal(550, '5.1.1', 'Gone'),
    ]
    for (const refusal of refusals) {
      box.deliveryTarget.checkRecipient = () => Promise.reject(refusal)
      const replies = await transaction('MAIL FROM:<a@client.test>', 'RCPT TO:<user@box.test>')
      expect(replies[1]).toBe(`${refusal.code} ${refusal.enhanced} ${refusal.text}`)
    }
  })
})

describe('the octets', () => {
  test.each([
    ['an empty message', Buffer.alloc(0)],
    ['no header', Buffer.from('just text\r\n')],
    ['a header only', Buffer.from('Subject: x\r\n')],
    ['a body only', Buffer.from('\r\nbody\r\n')],
    ['eight-bit text', Buffer.from('Subject: \xe9\xff\x80\r\n\r\n\xfe\xf0\r\n', 'latin1')],
    [
      'random octets',
      Buffer.from(
        randomBytes(100_000)
          .toString('latin1')
          .replaceAll(/[\0\r\n]/g, 'x')
          .replaceAll(/.{500}/gs, '$&\r\n') + '\r\n',
        'latin1',
      ),
    ],
    ['lines of 998 and more', Buffer.from(`X: ${'y'.repeat(5000)}\r\n\r\n${'z'.repeat(60_000)}\r\n`)],
    ['dots', Buffer.from('.\r\n..\r\n...\r\n.a\r\n\r\n.\r\n')],
  ])('%s is kept as sent', async (_, octets) => {
    const stuffed = Buffer.from(octets.toString('latin1').replaceAll(/^\./gm, '..'), 'latin1')
    for (const pieces of [1, 3]) {
      const client = await Dialogue.hello(box.port)
      await client.begin()
      const whole = Buffer.concat([stuffed, Buffer.from('.\r\n')])
      const step = Math.ceil(whole.length / pieces)
      await sendInPieces(
        client,
        Array.from({ length: pieces }, (_piece, index) => whole.subarray(index * step, (index + 1) * step)),
      )
      expect(await client.reply()).toMatch(/^250 2\.0\.0/)
      expect(digest(box.deliveryTarget.kept.at(-1)?.raw)).toBe(digest(octets))
      client.destroy()
    }
  })

  test('dots are unstuffed wherever the message is split', async () => {
    const whole = Buffer.from('..\r\na\r\n..\r\n...b\r\n..\r\n.\r\n')
    for (let at = 1; at < whole.length; at++) {
      const client = await Dialogue.hello(box.port)
      await client.begin()
      await sendInPieces(client, [whole.subarray(0, at), whole.subarray(at)])
      expect(await client.reply()).toMatch(/^250/)
      expect(box.deliveryTarget.kept.at(-1)?.raw.toString()).toBe('.\r\na\r\n.\r\n..b\r\n.\r\n')
      client.destroy()
    }
  })
})

describe('when the mailroom fails', () => {
  test.each([
    ['a line break', new Error('no\r\n250 yes'), '451 4.3.0'],
    ['a path', Object.assign(new Error("ENOENT: open '/secret/path'"), { code: 'ENOENT', responseCode: 250 }), '451 4.3.0'],
    ['no error at all', undefined, '451 4.3.0'],
    ['a text', 'EMFILE /secret', '451 4.3.0'],
    ['a full disk', storageFull(), '452 4.3.1'],
    ['a refusal', new Refusal(550, '5.7.26', 'DMARC\r\n250 ok'), '550 5.7.26 DMARC??250 ok'],
  ])('with %s nothing leaks', async (_, thrown, expected) => {
    // oxlint-disable-next-line prefer-promise-reject-errors
    box.deliveryTarget.before = () => Promise.reject(thrown)
    const client = await Dialogue.hello(box.port)
    const reply = await client.deliver(message)
    expect(reply.startsWith(expected)).toBe(true)
    expect(reply).not.toMatch(/secret|ENOENT|EMFILE|\r\n/)
    expect(await client.say('NOOP')).toMatch(/^250/)
    expect(box.logged.filter((line) => line.includes('message could not be stored')).length).toBe(
      expected.startsWith('451') ? 1 : 0,
    )
    client.destroy()
  })

  test('synchronously or at the recipient, it is the same', async () => {
    box.deliveryTarget.checkRecipient = () => {
      throw new TypeError('/secret')
    }
    expect((await transaction('MAIL FROM:<>', 'RCPT TO:<user@box.test>'))[1]).toBe('451 4.3.0 Local error, try again later')
    expect(
      box.logged.filter((line) => line.includes('"level":"error"')).map((line) => JSON.parse(line) as unknown),
    ).toMatchObject([{ level: 'error', msg: 'SMTP command failed', command: 'RCPT' }])
  })

  test('the text of an address is no part of another log line', async () => {
    await transaction(
      'MAIL FROM:<>',
      'RCPT TO:<"\'><script>$(id)@box.test>',
      'RCPT TO:<a%0d%0ab@box.test>',
      'RCPT TO:<\u202e@box.test>',
    )
    for (const line of box.logged) expect(() => JSON.parse(line) as unknown).not.toThrow()
  })
})

function digest(octets: Buffer | undefined): string {
  return createHash('sha256')
    .update(octets ?? 'nothing')
    .digest('hex')
}
