import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mailboxes } from '../../src/message/addresses.ts'
import { servedName } from '../../src/message/attachment-names.ts'
import { isAutomated } from '../../src/message/automated.ts'
import { headersOf } from '../../src/message/headers.ts'
import { attachmentsOf, parse } from '../../src/message/parse.ts'
import { headerOnly } from '../../src/message/header-only.ts'

const crlf = '\r\n'

function message(...lines: string[]): Buffer {
  return Buffer.from(lines.join(crlf))
}

function fixture(name: string): Buffer {
  return readFileSync(new URL(`../fixtures/mail/${name}.eml`, import.meta.url))
}

test('an attachment is given out by the index it was listed under', async () => {
  const raw = fixture('calendar-invite')
  const { attachments } = await parse(raw)
  const [second] = await attachmentsOf(raw, [1])
  expect(second?.attachment).toEqual(attachments[1])
  expect(second?.content.toString()).toBe('BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n')
  expect(second?.attachment.sha256).toBe(
    createHash('sha256')
      .update(second?.content ?? '')
      .digest('hex'),
  )
  expect(await attachmentsOf(raw, [2])).toEqual([])
  expect(await attachmentsOf(raw, [-1])).toEqual([])
  expect(await attachmentsOf(fixture('too-many-parts'), [0])).toEqual([])
})

test('header fields are named by their octets', () => {
  const raw = message('Received: from a', '\tby b', 'SUBJECT:  Hi', 'junk', 'X-Empty:', '', 'Not: a field')
  expect(headersOf(raw).map(({ name, value }) => [name, value])).toEqual([
    ['received', 'from a\tby b'],
    ['subject', 'Hi'],
    ['x-empty', ''],
  ])
  const subject = headersOf(raw)[1]
  expect(raw.subarray(subject?.start, subject?.end).toString()).toBe('SUBJECT:  Hi\r\n')
})

test('a header of more than 256 KiB is read that far', async () => {
  const raw = Buffer.concat([
    message('From: a@a.test', 'Subject: Big', ''),
    Buffer.from('X: y\r\n'.repeat(60_000)),
    message('', 'body'),
  ])
  expect(await parse(raw)).toMatchObject({
    subject: 'Big',
    from: { address: 'a@a.test' },
    body_text: null,
    parse_error: expect.stringMatching(/^header_too_large: /),
  })
})

test('the header of a part may not be too large either', async () => {
  const raw = message(
    'From: a@a.test',
    'Content-Type: multipart/mixed; boundary=x',
    '',
    '--x',
    `X: ${'y'.repeat(300_000)}`,
    '',
    'text',
    '--x--',
  )
  expect(await parse(raw)).toMatchObject({
    from: { address: 'a@a.test' },
    parse_error: expect.stringMatching(/^part_header_too_large: /),
  })
})

test('what is shown of a message has no control characters but tabs and line ends', async () => {
  const parsed = await parse(
    message(
      'From: =?utf-8?q?M=01allory?= <mallory@a.test>',
      'To: a\x01b@a.test',
      'Subject: =?utf-8?q?Hel=1Blo?=',
      'Message-ID: <a\x01b@a.test>',
      'Content-Type: multipart/mixed; boundary=x',
      '',
      '--x',
      'Content-Type: text/plain',
      '',
      'on\x01e\ttwo\x1b[31m\x7f three',
      '--x',
      'Content-Type: text/html',
      '',
      '<p>fo\x02ur&#1;</p><a href="https://a.test/&#2;x">fi&#3;ve</a>',
      '--x',
      'Content-Type: text/plain; name="a\x01b.txt"',
      'Content-Disposition: attachment',
      'Content-ID: <a\x01b>',
      '',
      'x',
      '--x--',
    ),
  )
  // eslint-disable-next-line no-control-regex -- these are what is looked for
  expect(JSON.stringify(parsed)).not.toMatch(/\\u00[01]|\x7f/)
  expect(parsed).toMatchObject({
    body_text: 'one\ttwo[31m three\n',
    body_html: expect.stringContaining('<p>four&#1;</p>'),
    links: [{ url: 'https://a.test/x', text: 'five' }],
    message_id: '<ab@a.test>',
    attachments: [{ content_id: 'ab' }],
  })
  expect(parsed.text).toContain('four')
})

test('a body of control characters alone is none', async () => {
  expect(await parse(message('From: a@a.test', '', '\x01\x02\x03'))).toMatchObject({ body_text: null, text: '', snippet: '' })
})

test('a body is kept up to its limit, and the rest is owned up to', async () => {
  const parsed = await parse(Buffer.concat([message('From: a@a.test', '', ''), Buffer.alloc(6 * 1024 * 1024, 'word ')]))
  expect(parsed.body_text).toHaveLength(5 * 1024 * 1024)
  expect(parsed.parse_error).toMatch(/^text_too_long: /)
})

test('a message of very many lines is read in part, and the rest is owned up to', async () => {
  const raw = Buffer.concat([message('From: a@a.test', 'Subject: Re: x', '', ''), Buffer.alloc(6_000_000, 'x\r\n')])
  const parsed = await parse(raw)
  expect(parsed).toMatchObject({ from: { address: 'a@a.test' }, parse_error: expect.stringMatching(/^too_many_lines: /) })
  expect(parsed.body_text).toMatch(/^x\nx\n/)
})

test.each(['<b>', '<li><p>', '<td><p>', '<dd><li>', '<option><p>', '<tr><li>', '<b></averylongnameofanelement>'])(
  'HTML that nests too deep still gives its words and links: %s',
  async (unit) => {
    const html = `${unit.repeat(5000)}Your code is 482913 <a href="https://a.test/">x</a>`
    const parsed = await parse(message('From: a@a.test', 'Content-Type: text/html', '', html))
    expect(parsed).toMatchObject({
      text: 'Your code is 482913 x',
      codes: ['482913'],
      links: [{ url: 'https://a.test/' }],
      parse_error: null,
    })
  },
)

test('elements that close each other do not nest', async () => {
  const html = '<table>'.concat('<tr><td>cell<td>x'.repeat(2000), '</table><ul>', '<li>item'.repeat(2000), '</ul>')
  const { text } = await parse(message('From: a@a.test', 'Content-Type: text/html', '', html))
  expect(text).toMatch(/\n- item\n/)
})

const parts = (type: string, ...bodies: [string, string][]) =>
  message(
    'From: a@a.test',
    'MIME-Version: 1.0',
    `Content-Type: ${type}; boundary=b`,
    '',
    ...bodies.flatMap(([header, body]) => ['--b', header, '', body]),
    '--b--',
    '',
  )

test.each([
  ['of a paragraph', ['one ', 'two ', 'three'], 'one two three'],
  ['after an empty quoted line', ['> Shall we?', '> ', 'Yes, at 9.'], 'Yes, at 9.'],
  ['after a quoted line that ends with a space', ['> Shall we? ', 'Yes, at 9.'], 'Yes, at 9.'],
  ['before a quoted line', ['On Friday Ada <ada@mail.test> wrote: ', '> Shall we?', '', 'Yes.'], 'Yes.'],
  ['before a signature', ['Yes. ', '-- ', 'Ada, of Acme'], 'Yes.'],
  ['that begin with a stuffed space', ['Dear ', ' From'], 'Dear From'],
])('flowed lines %s', async (_where, lines, text) => {
  expect((await parse(message('Content-Type: text/plain; format=flowed', '', ...lines))).text).toBe(text)
})

test('flowed lines of a quote become one, and deeper ones another', async () => {
  const lines = ['>> Hi ', '>> Ada, ', '> how are ', '> you?', 'Fi', 'ne']
  const { body_text } = await parse(message('Content-Type: text/plain; format=flowed; delsp=yes', '', ...lines, 'than ', 'ks'))
  expect(body_text?.trimEnd()).toBe(['>> HiAda,', '> how areyou?', 'Fi', 'ne', 'thanks'].join('\n'))
})

const blocks: [string, string[]][] = [
  ['a journey', ['From: Berlin Hbf', 'To: Paris Est', 'Date: 3 December 2026', '', 'Seat: 12A']],
  ['an enquiry', ['From: Bob <bob@mail.test>', 'Subject: Prices', 'Date: 3 December 2026', '', 'How much is it?']],
  ['what somebody else wrote', ['On 3 December 2026, Ada <ada@mail.test> wrote:', '', 'The third step fails.']],
  ['an old report', ['----- Original message -----', '', 'The third step fails.']],
]

test.each(blocks)('%s in a message that answers none is its text', async (_what, lines) => {
  const text = ['Dear Robin,', '', ...lines].join('\n')
  expect((await parse(message('Subject: News', '', text))).text).toBe(text)
  for (const field of ['In-Reply-To: <1@mail.test>', 'References: <1@mail.test>', 'Subject: [4711] Re: News'])
    expect((await parse(message(field, '', text))).text).toBe('Dear Robin,')
})

test.each(['---------- Forwarded message ---------', 'Begin forwarded message:', '-------- Weitergeleitete Nachricht --------'])(
  'what is below %j is kept under any subject',
  async (mark) => {
    const text = [
      'See below.',
      '',
      mark,
      'From: Ada <ada@mail.test>',
      'Date: Today',
      'Subject: Bill',
      'To: Bob',
      '',
      '12 EUR',
    ].join('\n')
    expect((await parse(message('Subject: For you', 'References: <1@mail.test>', '', text))).text).toBe(text)
  },
)

const bill = ['From: Ada <ada@mail.test>', 'Subject: Bill', 'To: Bob <bob@mail.test>', '', '12 EUR by Friday']

test.each([
  ['with its mark', ['> Begin forwarded message:', '> ', ...bill.map((line) => `> ${line}`)]],
  ['below its mark', ['Begin forwarded message:', '', ...bill.map((line) => `> ${line}`)]],
])('a forwarded message that is quoted %s is kept, but not in an answer', async (_where, lines) => {
  const text = ['Please pay.', '', ...lines].join('\n')
  for (const subject of ['Fwd: Bill', 'Fwd: Re: Bill', 'To be paid'])
    expect((await parse(message(`Subject: ${subject}`, 'References: <1@mail.test>', '', text))).text).toBe(text)
  expect((await parse(message('Subject: Re: Fwd: Bill', '', text))).text).not.toContain('12 EUR')
})

test('the quotes in HTML are kept where it answers nothing', async () => {
  const html = '<p>Ada commented on 3 December:</p><blockquote>Mend the third step.</blockquote><p>View it</p>'
  const text = async (field: string) => (await parse(message(field, 'Content-Type: text/html', '', html))).text
  expect(await text('Subject: News')).toBe('Ada commented on 3 December:\n\n> Mend the third step.\n\nView it')
  expect(await text('Subject: Re: News')).not.toContain('third')
})

test('an inline text with a name is a file of its own', async () => {
  const raw = parts(
    'multipart/mixed',
    ['Content-Type: text/plain', 'See the log.'],
    ['Content-Type: text/plain; name=log.txt\r\nContent-Disposition: inline; filename=log.txt', 'line 1'],
  )
  const { text, attachments } = await parse(raw)
  expect(text).toBe('See the log.')
  expect(attachments).toMatchObject([{ filename: 'log.txt', content_type: 'text/plain', disposition: 'inline', size: 6 }])
  expect((await attachmentsOf(raw, [0]))[0]?.content.toString()).toBe('line 1')
})

const plainPart: [string, string] = ['Content-Type: text/plain', 'Hello']
const htmlPart: [string, string] = ['Content-Type: text/html', '<p>World</p>']

test.each(['multipart/alternative', 'Multipart/alternative', 'multipart/ALTERNATIVE'])('%s is read once', async (type) => {
  expect((await parse(parts(type, plainPart, ['Content-Type: text/html', '<p>Hello</p>']))).text).toBe('Hello')
})

test('what an attached message is made of does not count', async () => {
  const attached = 'Subject: x\r\nContent-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\n\r\nother\r\n--c--'
  const raw = parts('multipart/mixed', plainPart, htmlPart, ['Content-Type: message/rfc822', attached])
  expect((await parse(raw)).text).toBe('Hello\n\nWorld')
})

test('a code that only the HTML has is found, however much the text says', async () => {
  const { codes, body_text } = await parse(
    parts(
      'multipart/alternative',
      ['Content-Type: text/plain', 'This message is best read in a program that shows HTML. '.repeat(20)],
      ['Content-Type: text/html', '<p>Your login code is <b>55 20 17</b></p>'],
    ),
  )
  expect(body_text?.length).toBeGreaterThan(600)
  expect(codes).toEqual(['552017'])
})

test.each([
  ['report.pdf', 'report.pdf'],
  ['/etc/passwd', 'passwd'],
  ['..\\..\\boot.ini', 'boot.ini'],
  ['a\r\nContent-Type: text/html', 'html'],
  ['\u202Egpj.exe', 'gpj.exe'],
  ['.\u0000.', 'attachment-3'],
  ['', 'attachment-3'],
  ['   ', 'attachment-3'],
  ['folder/', 'folder'],
  ['日本語.txt', '日本語.txt'],
  [`${'x'.repeat(500)}.tar.gz`, `${'x'.repeat(197)}.gz`],
])('the attachment %j is served as %j', (name, served) => {
  expect(servedName(name, 3)).toBe(served)
})

test.each([
  ['Alice <alice@A.Test>', [{ address: 'alice@a.test', name: 'Alice' }]],
  ['alice@bücher.test', [{ address: 'alice@xn--bcher-kva.test', name: '' }]],
  ['alice@XN--BCHER-KVA.test', [{ address: 'alice@xn--bcher-kva.test', name: '' }]],
  [
    '"Last, First" <a@a.test>, b@b.test',
    [
      { address: 'a@a.test', name: 'Last, First' },
      { address: 'b@b.test', name: '' },
    ],
  ],
  ['undisclosed-recipients:;', []],
  ['Nobody', []],
  ['=?utf-8?Q?a=40a.test?=', []],
  ['=?utf-8?Q?a?=@a.test', []],
])('%s names %j', (value, expected) => {
  expect(mailboxes([value])).toEqual(expected)
})

test.each([
  ['Auto-Submitted: auto-generated', true],
  ['Auto-Submitted: auto-replied; owner-email="a@a.test"', true],
  ['Auto-Submitted: no', false],
  ['Auto-Submitted: No (comment)', false],
  ['Precedence: bulk', true],
  ['Precedence: first-class', false],
  ['List-Id: <a.b.test>', true],
  ['List-Unsubscribe: <mailto:a@a.test>', true],
  ['X-Auto-Response-Suppress: OOF, AutoReply', true],
  ['X-Auto-Response-Suppress: None', false],
  ['X-Autoreply: yes', true],
  ['Feedback-ID: 1:2:3:a', true],
  ['Return-Path: <>', true],
  ['Return-Path: <a@a.test>', false],
  ['Content-Type: multipart/report; report-type=disposition-notification', true],
  ['Subject: bulk', false],
])('%s makes automated %s', (field, expected) => {
  expect(isAutomated(headersOf(message(field, '', '')), 'dana@mail.test')).toBe(expected)
})

test.each([
  ['From: dana@mail.test', false],
  ['From: no-reply@a.test', true],
  ['Precedence: bulk', true],
  ['List-Id: <a.b.test>', true],
  ['Auto-Submitted: No (comment)', false],
  ['Auto-Submitted:', false],
])('%s makes a message that stays unread automated %s', (field, expected) => {
  expect(headerOnly(message(field, '', ''), 'why').automated).toBe(expected)
})

test.each([
  'no-reply@a.test',
  'noreply@a.test',
  'do-not-reply@a.test',
  'donotreply@a.test',
  'MAILER-DAEMON@a.test',
  'no-reply+12@a.test',
])('nobody reads %s', (address) => {
  expect(isAutomated([], address)).toBe(true)
})

test('names and the subject turn nothing that is shown beside them', async () => {
  const raw = [
    'From: =?utf-8?b?4oCuVHNldCBrbmFi4oCsIGtuYUI=?= <eve@elsewhere.test>',
    'To: "\u2066Ada\u2069" <ada@pillarbox.test>, \u202eadc@pillarbox.test, b@pillarbox.test',
    'Cc: "\u200fעדה\u200e 2" <c@pillarbox.test>',
    'Subject: Invoice \u202efdp.exe\u202c \u2067x\u2069 \u061c1 \u200d\u{1f469}\u200d\u{1f4bb}',
    '',
    'x',
    '',
  ]
  expect(await parse(Buffer.from(raw.join('\r\n')))).toMatchObject({
    from: { address: 'eve@elsewhere.test', name: 'Tset knab knaB' },
    to: [
      { address: 'ada@pillarbox.test', name: 'Ada' },
      { address: 'b@pillarbox.test', name: '' },
    ],
    cc: [{ name: 'עדה 2' }],
    subject: 'Invoice fdp.exe x 1 \u{1f469}\u200d\u{1f4bb}',
  })
})

test('a person is nobody', () => {
  expect(isAutomated([], 'norah.reply@a.test')).toBe(false)
})

const units = [
  'code 1',
  '123456 ',
  'A1-',
  '> ',
  '\n',
  'On 1 <a@b>:\n',
  'From: a\nTo: b\n',
  'http://',
  'http://xn--a.',
  '<a href="http://a.test/">',
  '<b></x>',
  '<table><tr><td>',
  '<li><p>',
  '<p>x</p>',
  '<!--',
  '&#',
  '[a](http:',
  '\u200c',
  '验证码1',
  '_',
]

test.each(units)('a megabyte of %j is read', async (unit) => {
  const body = unit.repeat(1_000_000 / unit.length)
  for (const type of ['text/plain', 'text/html']) {
    const parsed = await parse(message('From: a@a.test', 'Subject: Your code', `Content-Type: ${type}; charset=utf-8`, '', body))
    expect(parsed.parse_error).toBeNull()
  }
})

test.each([
  ['in one piece', 'Content-Type: a/b\r\n\r\nx\r\n'],
  ['in several pieces', 'Content-Type: application/x\r\nContent-Disposition: attachment; filename=a\r\n\r\nx\r\n'],
  [
    'with long attachments',
    `Content-Type: application/x\r\nContent-Disposition: attachment; filename=a\r\n\r\n${'x'.repeat(998)}\r\n`,
  ],
])('a message of more than a thousand attachments is given up, %s', async (_, part) => {
  const raw = Buffer.from(
    `From: eve@evil.test\r\nSubject: many\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${`--b\r\n${part}`.repeat(1001)}--b--\r\n`,
  )
  expect(await parse(raw)).toMatchObject({
    subject: 'many',
    from: { address: 'eve@evil.test' },
    attachments: [],
    parse_error: 'too_many_parts: The message has more than 1000 parts.',
  })
  expect(await attachmentsOf(raw, [0])).toEqual([])
})

test('an attachment whose part ends in a header that is too large is given up', async () => {
  const file = `--b\r\nContent-Type: application/x\r\n\r\n${'x\r\n'.repeat(30_000)}`
  const raw = Buffer.from(
    `From: eve@evil.test\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${file}--b\r\n${`X-A: ${'a'.repeat(900)}\r\n`.repeat(2000)}\r\n`,
  )
  expect((await parse(raw)).parse_error).toMatch(/^part_header_too_large/)
})

test.each([
  ['no charset', 'text/plain', 'base64'],
  ['US-ASCII', 'text/plain; charset=us-ascii', 'base64'],
  ['no charset, in an encoding that the library reads', 'text/plain', 'base64 (c)'],
  ['no charset, in flowed text', 'text/plain; format=flowed', 'base64'],
])('text of 8 bits that is not UTF-8, of %s, is Windows-1252', async (_, type, encoding) => {
  const head = `From: a@a.test\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n`
  const of = async (octets: Buffer): Promise<string | null> =>
    (await parse(Buffer.from(head + octets.toString('base64'), 'latin1'))).text
  expect(await of(Buffer.from('Ihr Schl\xfcssel: 482913 \x80', 'latin1'))).toBe('Ihr Schlüssel: 482913 €')
  expect(await of(Buffer.from('Ihr Schlüssel: 482913 €'))).toBe('Ihr Schlüssel: 482913 €')
  for (const end of ['', '\r', '\r\n']) expect(await of(Buffer.from(`Caf\xe9${end}`, 'latin1'))).toMatch(/^Café\s*$/)
})

test('text that is said to be UTF-8 and is not keeps what is', async () => {
  const head = 'From: a@a.test\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n'
  expect((await parse(Buffer.from(`${head}Schl\xfcssel 482913`, 'latin1'))).text).toBe('Schl\ufffdssel 482913')
})

test.each(['utf-8', 'iso-8859-1'])(
  'a text in %s that is millions of lines once it is decoded is read up to the limit',
  async (charset) => {
    const text = Buffer.from('a\r\n'.repeat(2_000_000)).toString('base64').replaceAll(/.{76}/g, '$&\r\n')
    const head = `Content-Type: text/plain; charset=${charset}\r\nContent-Transfer-Encoding: base64\r\n\r\n`
    const { body_text, parse_error } = await parse(Buffer.from(head + text))
    expect(parse_error).toMatch(/^text_too_long: /)
    expect(body_text!.length).toBeGreaterThan(2_000_000)
    expect(body_text!.length).toBeLessThan(2_500_000)
  },
)
