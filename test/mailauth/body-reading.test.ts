import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Dns } from '../../src/net/dns.ts'
import { isVouchedFor } from '../../src/mail/model.ts'
import { checkMessage } from '../../src/mailauth/verdict.ts'
import { parse } from '../../src/message/parse.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { envelope, rsaKey, seal, sign } from '../support/signed-mail.ts'

const rsa = rsaKey()
let stub: DnsStub
beforeAll(async () => {
  stub = await DnsStub.start()
  stub
    .txt('_dmarc.bank.test', 'v=DMARC1; p=reject')
    .txt('s._domainkey.bank.test', rsa.record)
    .txt('s._domainkey.list.test', rsa.record)
})
afterAll(() => stub.close())

/** As Gmail signs: neither Content-Type nor Content-Transfer-Encoding. */
const few = 'from:to:subject:date:message-id:mime-version'
const all = `${few}:content-type:content-transfer-encoding`

function mail(lines: string[], body: string[]): string {
  const header = [
    'From: Bank <service@bank.test>',
    'To: u@mx.test',
    'Subject: Your request',
    'Date: Thu, 19 Nov 2026 10:00:00 +0000',
    'Message-ID: <1@bank.test>',
    'MIME-Version: 1.0',
  ]
  return [...header, ...lines, '', ...body, ''].join('\r\n')
}

async function signed(lines: string[], body: string[], headerList = few): Promise<string> {
  return (await sign(mail(lines, body), 'bank.test', 's', rsa, { headerList })).toString('latin1')
}

async function verdictOn(raw: string) {
  const lookup = new Dns({ servers: stub.servers, timeout: 60_000 }).lookup
  const from = envelope({ remote_address: '203.0.113.9', mail_from: 'eve@elsewhere.test', helo: 'elsewhere.test' })
  const settings = { hostname: 'mx.test', dmarc: 'reject' as const, deadline: 100_000, trusted_sealers: ['list.test'] }
  return checkMessage(Buffer.from(raw, 'latin1'), from, lookup, settings)
}

/** What the signature comes to. */
async function outcome(raw: string) {
  const { verified_domain, action, authentication } = await verdictOn(raw)
  const { result, reason, aligned } = authentication.dkim[0]!
  return { verified_domain, action, dmarc: authentication.dmarc.result, result, reason, aligned }
}

const kept = { action: 'keep', dmarc: 'pass', aligned: true }
const counts = { ...kept, verified_domain: 'bank.test', result: 'pass', reason: null }
/** Kept, as it may be honest, and not verified. */
const flawed = (reason: string) => ({
  ...kept,
  verified_domain: null,
  result: 'policy',
  reason: expect.stringContaining(reason),
})

/** What Eve wrote, which the bank quotes. */
const inner = ['--INNER', 'Content-Type: text/plain', '', 'Your sign-in code is 493817', '--INNER--']
const outer = [
  '--OUTER',
  'Content-Type: text/plain',
  '',
  'We could not deliver your message.',
  '--OUTER',
  'Content-Type: message/rfc822',
  '',
  'From: eve@elsewhere.test',
  'Content-Type: multipart/mixed; boundary=INNER',
  '',
  ...inner,
  '--OUTER--',
]
const iso = (number: number) => `Content-Type: text/plain; charset=iso-8859-${number}`
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('a Content-Type that nobody signed', () => {
  const type = 'Content-Type: multipart/mixed; boundary="OUTER"'

  test.each([
    'multipart/mixed; boundary=INNER',
    '"multipart/mixed"; boundary=INNER',
    '"multi"part/mixed; boundary=INNER',
    String.raw`\multipart/mixed; boundary=INNER`,
    'multipart /mixed; boundary=INNER',
    '=?utf-8?q?multipart/mixed?=; boundary=INNER',
    ';multipart/mixed; boundary=INNER',
    '\u00a0multipart/mixed; boundary=INNER',
    'multipart/mixed; boundary=OUTER" "INNER',
    'multipart/mixed; boundary="OUTER"INNER',
    'multipart/mixed; boundary="OUTER\t"',
    'multipart/mixed; boundary=OUTER; boundary=INNER',
    'multipart/mixed; boundary=OUTER; boundary*=INNER',
    `multipart/mixed; boundary=OUTER; a=${'x'.repeat(2000)}; boundary=INNER`,
    'multipart/mixed; boundary="=?utf-8?q?OUTER?="',
    'multipart/mixed',
    'multipart/digest; boundary=OUTER',
    'text/plain',
    'text/plain; boundary=INNER',
    'text/html',
    'message/rfc822',
    'application/octet-stream',
    '',
  ])('%s: the parts are read in another way than they were sent', async (other) => {
    const raw = await signed([type], outer)
    expect(await outcome(raw.replace(type, `Content-Type: ${other}`))).toEqual(flawed('Content-Type is not signed'))
  })

  test('is taken away', async () => {
    const raw = await signed([type], outer)
    expect(await outcome(raw.replace(`${type}\r\n`, ''))).toEqual(flawed('Content-Type is not signed'))
  })

  test.each([
    ['boundary="OUTER"', type, outer],
    ['boundary=OUTER and more', 'Content-Type: Multipart/Report; report-type=delivery-status; boundary=OUTER;', outer],
    ['a folded field', 'Content-Type: multipart/alternative;\r\n\tboundary="OUTER"', ['', ...outer, '', '']],
    ['a preamble that says so', type, ['This is a multi-part message in MIME format.', '', ...outer]],
    [
      'text',
      'Content-Type: text/plain; charset="UTF-8"; format=flowed',
      ['Hello', '', '-- ', 'The bank', '-----', 'x', '-------'],
    ],
    [
      'a text with what stands in angle brackets in texts',
      'Content-Type: text/plain',
      [
        'Ada <ada@bank.test> wrote: 1 < 2 <3',
        '> <https://bank.test/?a=1&b=2> <mailto:b@bank.test> Q&A; R & D',
        'ref <CAF+1=2@m.bank.test>',
      ],
    ],
    ['a text with a quotation', 'Content-Type: text/plain; format=flowed', ['Hello', '', 'Ada wrote:', '> Hi', '> ', '> Bye']],
    ['no type', 'X-Mailer: x', ['Hello']],
    ['an HTML document', 'Content-Type: text/html; charset=utf-8', ['<!DOCTYPE html>', '<p>Hello</p>']],
  ])('counts where the body bears it out: %s', async (_, line, body) => {
    expect(await outcome(await signed([line], body))).toEqual(counts)
  })

  test.each([
    [
      'a text that quotes parts',
      'text/plain',
      ['You wrote:', '--x', '', 'Your code is 493817', '--x--'],
      'multipart/mixed; boundary=x',
    ],
    ['a text with a signature', 'text/plain', ['Hello', '-- ', 'Eve'], 'multipart/mixed; boundary*0=zz'],
    ['a text', 'text/plain', ['You wrote: <a href="https://evil.test">Sign in</a>'], 'text/html'],
    ['a text in another charset', 'text/plain', ['You wrote: +AGEAYg-'], 'text/plain; charset=utf-7'],
    ['a text as a file', 'text/plain', ['Hello'], 'text/plain; name=code.txt'],
    ['HTML that begins with words', 'text/html', ['Hello<br>you'], 'text/plain'],
    ['HTML that hides words', 'text/html', ['Hello, <span hidden>Your code is 493817</span>'], 'text/plain; charset=utf-8'],
    ['HTML with a comment', 'text/html', ['Hello <!-- Your code is 493817 -->'], 'text/plain'],
    ['HTML with an end tag alone', 'text/html', ['Hello</p>Your code is 493817'], 'text/plain'],
    ['HTML of character references', 'text/html', ['Your code is &#52;93817'], 'text/plain'],
    ['HTML of named characters', 'text/html', ['Your code is 493&shy;817'], 'text/plain'],
    ['HTML with an element that looks like a link', 'text/html', ['Hello <https://x hidden>493817'], 'text/plain'],
    ['HTML with an element that looks like an address', 'text/html', ['Hello <p/hidden/x=@y>493817'], 'text/plain'],
    ['HTML as its source', 'text/html', ['<!-- Your code is 493817 --><p>Hello</p>'], 'text/plain'],
    [
      'parts before more text',
      'multipart/mixed; boundary=x',
      ['--x', '', 'Hello', '--x--', 'More'],
      'multipart/mixed; boundary=x',
    ],
  ])('does not count: %s', async (_, honest, body, other) => {
    const raw = await signed([`Content-Type: ${honest}`], body)
    expect(await outcome(raw.replace(`Content-Type: ${honest}`, `Content-Type: ${other}`))).toEqual(
      flawed('Content-Type is not signed'),
    )
    expect(await outcome(await signed([`Content-Type: ${other}`], body, all))).toEqual(counts)
  })

  test('nor does one that hides its tags in an encoding', async () => {
    const html = 'Hello, <span style="display:none">your sign-in code is 493817</span>'
    const names = `${few}:content-transfer-encoding`
    for (const [encoding, body] of [
      ['base64', base64(`${'Hello, you. '.repeat(500)}${html}`).match(/.{1,76}/g)!],
      ['quoted-printable', [html.replaceAll('<', '=3C')]],
      ['quoted-printable', [html.replaceAll('<', '<=\r\n')]],
    ] as const) {
      const lines = [`Content-Transfer-Encoding: ${encoding}`]
      for (const first of ['Content-Type: text/plain', 'X-Mailer: x'])
        expect(await outcome(await signed([first, ...lines], [...body], names))).toEqual(flawed('Content-Type is not signed'))
    }
  })

  test('that joins lines (delsp)', async () => {
    const flowed = 'Content-Type: text/plain; format=flowed'
    const raw = await signed([flowed], ['Your code', 'is 112233'])
    expect(await outcome(raw)).toEqual(counts)
    expect(await outcome(raw.replace(flowed, `${flowed}; delsp=yes`))).toEqual(flawed('Content-Type is not signed'))
  })

  test('is taken from HTML', async () => {
    const html = 'Hello,<br>you.<span style="display:none">Your sign-in code is 493817</span>'
    const raw = await signed(['Content-Type: text/html'], [html])
    expect(await outcome(raw.replace('Content-Type: text/html\r\n', ''))).toEqual(flawed('Content-Type is not signed'))
  })

  test('of a text that quotes parts is not known to be its own', async () => {
    expect(await outcome(await signed(['Content-Type: text/plain'], ['You wrote:', ...inner]))).toEqual(
      flawed('Content-Type is not signed'),
    )
    expect(await outcome(await signed(['Content-Type: text/plain'], ['You wrote:', ...inner], all))).toEqual(counts)
  })

  test('is of honest mail too, which is kept', async () => {
    const preamble = 'This is a cryptographically signed message in MIME format.'
    for (const [line, body] of [
      ['multipart/signed; boundary=OUTER; micalg=sha-256', [preamble, '', ...outer]],
      ['multipart/encrypted; boundary=OUTER', outer],
      ['multipart/mixed; boundary=OUTER', [...outer, '', 'An epilogue']],
      ['text/plain; charset=us-ascii; format=flowed; delsp=yes', ['Hello']],
      ['text/plain; charset=iso-2022-jp', ['Hello']],
      ['text/plain; charset=utf8', ['Hello']],
      ['text/plain', ['Vec<u8>, &lt;']],
      ['text/plain', ['Hello, this is the bank.\r\n'.repeat(50_000)]],
      ['text/html', ['<div>Hello</div>']],
    ] as const) {
      expect(await outcome(await signed([`Content-Type: ${line}`], [...body]))).toEqual(flawed('Content-Type is not signed'))
    }
  })

  test('says why in the verdict', async () => {
    const { authentication, reply, authentication_results } = await verdictOn(
      await signed(['Content-Type: text/html'], ['<p>Hello</p>']),
    )
    expect(authentication.dmarc).toMatchObject({
      result: 'pass',
      aligned_by: ['dkim'],
      reason: 'not verified: Content-Type is not signed, and is not plainly that of the body',
    })
    expect(reply).toBeNull()
    expect(authentication_results).toContain('dkim=policy')
  })

  test('leaves a signature without effect that has another flaw', async () => {
    const future = { headerList: few, signTime: new Date('2100-01-01') }
    const raw = await sign(mail(['Content-Type: text/html'], ['<p>Hello</p>']), 'bank.test', 's', rsa, future)
    const expected = { verified_domain: null, action: 'reject', dmarc: 'fail', result: 'policy', aligned: false }
    expect(await outcome(raw.toString())).toMatchObject(expected)
    const another = `Subject: Another\r\n${await signed(['Content-Type: text/html'], ['<p>Hello</p>'])}`
    expect(await outcome(another)).toMatchObject(expected)
  })

  test('does not matter beside a signature that covers it', async () => {
    const raw = await sign(mail(['Content-Type: text/html'], ['<p>Hello</p>']), 'bank.test', 's', rsa, { headerList: few })
    const twice = await sign(raw.toString(), 'bank.test', 's', rsa, { headerList: all })
    const { verified_domain, authentication } = await verdictOn(twice.toString())
    expect(verified_domain).toBe('bank.test')
    expect(authentication.dmarc.reason).toBeNull()
  })

  test('has its signature vouch for no field beside another that counts', async () => {
    const message = `Reply-To: desk@bank.test\r\n${mail(['Content-Type: text/html'], ['<p>Hello</p>'])}`
    const first = await sign(message, 'bank.test', 's', rsa, { headerList: all })
    const second = await sign(first.toString(), 'bank.test', 's', rsa, { headerList: `${few}:reply-to` })
    const { verified_domain, authentication } = await verdictOn(second.toString())
    expect(verified_domain).toBe('bank.test')
    expect(isVouchedFor(authentication, 'subject')).toBe(true)
    expect(isVouchedFor(authentication, 'reply-to')).toBe(false)
  })

  test('is kept under a seal too, and not verified', async () => {
    const results = 'list.test; dmarc=pass header.from=bank.test'
    const raw = (await seal(Buffer.from(mail([type], outer)), 'list.test', 's', rsa, results, 'none', few)).toString()
    expect(await verdictOn(raw)).toMatchObject({ action: 'keep', authentication: { arc: { result: 'pass' } } })
    expect(await verdictOn(raw.replace(type, 'Content-Type: "multipart/mixed"; boundary=INNER'))).toMatchObject({
      action: 'keep',
      verified_domain: null,
      authentication: { arc: { result: 'pass', reason: expect.stringContaining('Content-Type is not signed') } },
    })
  })
})

describe('a Content-Transfer-Encoding that nobody signed', () => {
  const names = `${few}:content-type`
  const text = 'Content-Type: text/plain; charset=utf-8'

  test.each([
    ['base64', 'You wrote:', base64('Your code is 493817')],
    ['quoted-printable', 'You wrote:', '=59our code is =34=39=33=38=31=37'],
    ['x-uuencode', 'You wrote:', 'x'],
    ['=?utf-8?q?base64?=', 'You wrote:', 'x'],
    ['base64 (x)', 'You wrote:', 'x'],
  ])('%s is put before a text', async (encoding, ...body) => {
    const raw = await signed([text], body, names)
    expect(await outcome(raw)).toEqual(counts)
    expect(await outcome(`Content-Transfer-Encoding: ${encoding}\r\n${raw}`)).toEqual(
      flawed('Content-Transfer-Encoding is not signed'),
    )
  })

  test('is put before several parts', async () => {
    const raw = await signed(['Content-Type: multipart/mixed; boundary=OUTER'], outer, names)
    expect(await outcome(`Content-Transfer-Encoding: base64\r\n${raw}`)).toEqual(
      flawed('Content-Transfer-Encoding is not signed'),
    )
  })

  const long = 'Hello, this is the bank, and you may come and see us. '
  test.each([
    ['base64', base64(long).match(/.{1,40}/g)!],
    ['base64', base64('493817 1').match(/.{1,40}/g)!],
    ['base64', base64(long.repeat(20_000)).match(/.{1,76}/g)!],
    ['quoted-printable', ['Gr=C3=BC=C3=9Fe from the bank']],
    ['quoted-printable', ['<html><a href=3D"https://bank.test/?code=3D493817">Sign in</a></html>']],
    ['quoted-printable', ['Your code is 49=', '3817']],
    ['quoted-printable', ['Hello=20', 'you']],
    ['quoted-printable', ['Hello', '=2E']],
  ])('%s is called something else, or nothing', async (encoding, body) => {
    const line = `Content-Transfer-Encoding: ${encoding}\r\n`
    const raw = await signed([text, line.trimEnd()], body, names)
    for (const other of ['Content-Transfer-Encoding: binary\r\n', 'Content-Transfer-Encoding: 7BIT\r\n', ''])
      expect(await outcome(raw.replace(line, other))).toEqual(flawed('Content-Transfer-Encoding is not signed'))
  })

  test.each([
    ['7bit', ['https://bank.test/?code=493817&year=2026', 'Rate=95%', '=====', '=']],
    ['7bit', ['test']],
    ['7bit', ['Your code is 112233']],
    ['7bit', ['Hello']],
    ['8bit', ['https://bank.test/?year=2026']],
    ['8bit', ['a=3D', 'b=x']],
    ['quoted-printable', ['Hello']],
    ['8bit', ['Grüße'], text],
    ['BASE64', base64('Hello, this is the bank, and you may come and see us.').match(/.{1,40}/g)!, text],
    ['quoted-printable', ['<html><a href=3D"https://bank.test">Gr=C3=BC=C3=9Fe</a>'], 'Content-Type: text/html'],
  ])('counts where the body bears it out: %s', async (encoding, body, type = text) => {
    expect(await outcome(await signed([type, `Content-Transfer-Encoding: ${encoding}`], body, names))).toEqual(counts)
    expect(
      await outcome(
        await signed([type.replace('text/html', 'text/html; charset=utf-8'), `Content-Transfer-Encoding: ${encoding}`], body),
      ),
    ).toEqual(counts)
  })
})

/** Signed with `simple` throughout. */
async function changeable(fields: string[], body: string[], headerList: string): Promise<string> {
  const octets = Buffer.from(mail(fields, body), 'latin1')
  return (await sign(octets, 'bank.test', 's', rsa, { headerList, canonicalization: 'simple/simple' })).toString('latin1')
}

/** The signed message with these fields instead. */
function withFields(raw: string, sent: string[], other: string[]): string {
  const before = afterVersion(sent)
  expect(raw).toContain(before)
  return raw.replace(before, afterVersion(other))
}

function afterVersion(fields: string[]): string {
  return `\r\nMIME-Version: 1.0\r\n${fields.join('\r\n')}\r\n`
}

const plainAndHtml = (first: string, second: string) => [
  '--b',
  'Content-Type: text/plain',
  '',
  first,
  '--b',
  'Content-Type: text/html',
  '',
  `<p class="x">${second}</p>`,
  '--b--',
]
const multipartOf = (subtype: string) => `Content-Type: multipart/${subtype}; boundary=b`

describe('fields that nobody signed, changed by a forwarder', () => {
  const plain = 'Content-Type: text/plain; charset=utf-8'
  const quotedPrintable = 'Content-Transfer-Encoding: quoted-printable'
  const different = plainAndHtml('Your code is 111111', 'Nobody of us asks for it. If somebody does, it is fraud.')
  const equal = plainAndHtml('Hello Ada, your code is 111111.', 'Hello <b>Ada</b>, your code is 111111.')
  const withSignedType = `${few}:content-type`
  const short = [base64('Your code is 493817')]

  test.each([
    ['lines that flow', [plain], [`${plain}; format=flowed`], ['Your code: 493 ', '817'], few],
    [
      'lines that flow, declared in another way',
      [plain],
      ['Content-Type: text/plain; format="Flowed"'],
      ['On Monday Eve wrote: ', 'x'],
      few,
    ],
    ['a quotation that is stuffed', [plain], [`${plain}; format=flowed`], [' > Your code: 493', 'x'], few],
    ['quoted-printable', [plain], [plain, quotedPrintable], ['You wrote: 4938=', '17 =E2=82=AC'], withSignedType],
    ['quoted-printable, with neither field signed', [plain], [plain, quotedPrintable], ['You wrote: 4938=', '17'], few],
    [
      'quoted-printable in HTML without attributes',
      ['Content-Type: text/html'],
      ['Content-Type: text/html', quotedPrintable],
      ['<html>4938=', '17'],
      few,
    ],
    ['base64', [plain], [plain, 'Content-Transfer-Encoding: base64'], short, withSignedType],
    [
      'base64 in another charset',
      ['Content-Type: text/plain; charset=windows-1256'],
      ['Content-Type: text/plain; charset=windows-1256', 'Content-Transfer-Encoding: base64'],
      ['49HNyMcgyN8K'],
      withSignedType,
    ],
    ['quoted-printable in another charset', [iso(1)], [iso(1), quotedPrintable], ['You wrote: caf=E9'], withSignedType],
    [
      'blanks that quoted-printable leaves out',
      [`${plain}; format=flowed`],
      [`${plain}; format=flowed`, quotedPrintable],
      ['493 ', '817'],
      few,
    ],
    ['base64, with neither field signed', [plain], [plain, 'Content-Transfer-Encoding: base64'], short, few],
    ['parts that say different things, as alternatives', [multipartOf('mixed')], [multipartOf('alternative')], different, few],
    ['alternatives that say different things, as parts', [multipartOf('alternative')], [multipartOf('related')], different, few],
    [
      'a charset, of a body that is not the base64 it is called',
      [plain, 'Content-Transfer-Encoding: base64'],
      [iso(5), 'Content-Transfer-Encoding: base64'],
      ['=CF 720518'],
      `${few}:content-transfer-encoding`,
    ],
    ['a charset of other letters', [plain], ['Content-Type: text/plain; charset=iso-8859-5'], ['Pay f\u00fcr 1'], few],
  ])('%s: neither counts', async (_, sent, other, body, names) => {
    const raw = await changeable(sent, body, names)
    const reason = flawed('is not signed')
    expect(await outcome(raw)).toEqual(reason)
    expect(await outcome(withFields(raw, sent, other))).toEqual(reason)
  })

  test.each([
    ['alternatives, as parts', [multipartOf('alternative')], [multipartOf('mixed')], equal],
    ['alternatives, as a report', [multipartOf('alternative')], [multipartOf('report')], equal],
    [
      'a footer, as an alternative',
      [multipartOf('mixed')],
      [multipartOf('alternative')],
      [...equal.slice(4, 8), '--b', '', 'To unsubscribe', '--b--'],
    ],
    ['a word that is the base64 of nothing', [plain], [plain, 'Content-Transfer-Encoding: base64'], ['internationalize']],
    ['a text in UTF-8', [plain], ['Content-Type: text/plain; charset=iso-8859-1'], ['Gr\u00c3\u00bc\u00c3\u009fe']],
    ['dashes', [plain], ['Content-Type: multipart/mixed; boundary="---"'], ['-----', 'code: 493817', '', 'Hello', '-------']],
    [
      'HTML in quoted-printable',
      ['Content-Type: text/html', quotedPrintable],
      ['Content-Type: text/html'],
      ['<html><a href=3D"https://bank.test">4938=', '17</a></html>'],
    ],
    [
      'HTML that flows',
      ['Content-Type: text/html'],
      ['Content-Type: text/html; format=flowed'],
      ['<html><pre>4938 ', '17</pre></html>'],
    ],
  ])('%s: what was sent counts, the other does not', async (_, sent, other, body) => {
    const raw = await changeable(sent, body, few)
    expect(await outcome(raw)).toEqual(counts)
    expect(await outcome(withFields(raw, sent, other))).toEqual(flawed('is not signed'))
  })

  const attached = ['--b', 'Content-Type: application/pdf; name=x.pdf', '', 'x', '--b--']
  test.each([
    ['one text and a file', ['--b', 'Content-Type: text/plain', '', 'Hello', ...attached]],
    [
      'alternatives and a file',
      [
        '--b',
        'Content-Type: multipart/alternative; boundary=c',
        '',
        ...equal.map((line) => line.replace('--b', '--c')),
        ...attached,
      ],
    ],
    ['HTML with images', ['--b', 'Content-Type: text/html', '', '<p>Hello</p>', ...attached]],
  ])('%s are shown alike in every multipart', async (_, body) => {
    for (const subtype of ['mixed', 'related', 'alternative', 'signed'])
      expect(await outcome(await changeable([multipartOf(subtype)], body, few))).toEqual(counts)
  })
})

describe('a signed Content-Type that software reads in different ways', () => {
  test.each([
    ['format=flowed, continued', 'text/plain; format*0=flo; format*1=wed'],
    ['format=flowed, with octets written in hexadecimal', "text/plain; format*=us-ascii'en'%66lowed"],
    ['format=flowed, with an escape', String.raw`text/plain; format="flo\wed"`],
    ['format=flowed, as an encoded word', 'text/plain; format="=?utf-8?q?=66lowed?="'],
    ['format=flowed, with a comment', 'text/plain; format=flo(x)wed'],
    ['format=flowed, with two comments', 'text/plain; for(x)mat=flo(y)wed'],
  ])('%s: spaces that are not signed join lines', async (_, line) => {
    const message = ['code is 4938', '17']
    const inPart = ['--b', `Content-Type: ${line}`, '', ...message, '--b--']
    for (const [header, lines] of [
      [line, message],
      ['multipart/mixed; boundary=b', inPart],
    ] as const) {
      const raw = await signed([`Content-Type: ${header}`], [...lines], all)
      expect(await outcome(raw.replace('4938\r\n', '4938 \r\n'))).toEqual(flawed('ambiguous'))
    }
  })

  test.each(['mul(x)tipart/mixed', '=?us-ascii?q?multipart?=/mixed', String.raw`mul\tipart/mixed`])('%s', async (name) => {
    const body = ['--b', 'Content-Type: text/plain', '', 'Your code is 493817', '--b', '', 'x', '--b--']
    const raw = await signed([`Content-Type: ${name}; boundary=b`], body, all)
    expect(await outcome(raw.replace('--b\r\n\r\n', '--b\r\n \r\n'))).toEqual(flawed('ambiguous'))
    const nested = ['--o', `Content-Type: ${name}; boundary=b`, '', ...body, '--o--']
    const whole = await signed(['Content-Type: multipart/mixed; boundary=o'], nested, all)
    expect(await outcome(whole.replace('--b\r\n\r\n', '--b\r\n \r\n'))).toEqual(flawed('ambiguous'))
  })

  test('is usual in the names of files', async () => {
    for (const name of [
      'name="x (1).pdf"',
      'name="=?utf-8?q?f=C3=BCr.pdf?="',
      "name*0*=utf-8''f%C3%BC; name*1=r.pdf",
      'name==?utf-8?q?f=C3=BCr.pdf?=',
    ]) {
      const body = ['--b', `Content-Type: application/pdf; ${name}`, '', 'x', '--b--']
      expect(await outcome(await signed(['Content-Type: multipart/mixed; boundary=b'], body, all))).toEqual(counts)
    }
  })
})

const pay = 'Pay f\u00fcr'
const headed = (field: string, value: string, lines: string[], headerList = few) => {
  const whole = mail(lines, ['Hello']).replace(new RegExp(`^${field}: .*$`, 'm'), `${field}: ${value}`)
  return sign(Buffer.from(whole, 'latin1'), 'bank.test', 's', rsa, { headerList })
}
const outcomeOf = async (octets: Buffer) => outcome(octets.toString('latin1'))
const subjectOf = async (octets: string) => (await parse(Buffer.from(octets, 'latin1'))).subject

describe('octets above 127, which read differently in another charset', () => {
  test.each([
    ['Subject', pay],
    ['From', 'B\u00e4nk <service@bank.test>'],
    ['To', '"M\u00fcller" <u@mx.test>'],
  ])('in a signed %s: not verified unless Content-Type is signed', async (field, value) => {
    const reason = flawed('has octets that are not UTF-8, and Content-Type is not signed')
    const honest = await headed(field, value, ['X-Mailer: x'])
    expect(await outcomeOf(honest)).toEqual(reason)
    for (const line of [iso(5), 'Content-Type: multipart/mixed; charset=iso-8859-5; boundary=b'])
      expect(await outcomeOf(Buffer.concat([Buffer.from(`${line}\r\n`), honest]))).toMatchObject({ verified_domain: null })
    expect(await outcomeOf(await headed(field, value, [iso(1)]))).toEqual(reason)
    expect(await outcomeOf(await headed(field, value, [iso(1)], all))).toEqual(counts)
    expect(await outcomeOf(await headed(field, Buffer.from(value).toString('latin1'), [iso(1)]))).toEqual(counts)
  })

  test('in a field that is not signed do not matter', async () => {
    expect(await outcomeOf(await headed('MIME-Version', pay, [iso(1)], 'from:to:subject:date:message-id'))).toEqual(counts)
  })

  test.each([
    ['a name of octets above 127', `${iso(5)}; name="f\u00fcr"`, (raw: string) => `X-Note: \u00e9\r\n${raw}`],
    ['a CR within a field', iso(1), (raw: string) => `X-Note: a\r${iso(5)}\r\n${raw}`],
    ['more white space', iso(5), (raw: string) => raw.replace('; charset', `;${' '.repeat(300)}charset`)],
    ['white space beside an equals sign', iso(5).replace('=', ' = '), (raw: string) => raw.replace(' = ', '  =\t')],
  ])('in a Subject are read by the signed Content-Type, whatever %s', async (_, line, changed) => {
    const raw = (await headed('Subject', pay, [line], all)).toString('latin1')
    expect(await outcome(raw)).toEqual(counts)
    const other = changed(raw)
    expect(other).not.toBe(raw)
    expect(await outcome(other)).toEqual(counts)
    expect(await subjectOf(other)).toBe(await subjectOf(raw))
    expect(await subjectOf(raw)).toBe(line === iso(1) ? pay : 'Pay f\u045cr')
  })
})

test('a long text is held against its encoding by its beginning', async () => {
  const long = ['Hello, this is the bank, and you may come and see us.\r\n'.repeat(25_000)]
  expect(await outcome(await signed(['Content-Type: text/plain'], long, `${few}:content-type`))).toEqual(counts)
})

describe('a Content-Disposition that nobody signed', () => {
  test.each(['attachment', 'attachment; filename="493817 is your code.txt"', 'inline; filename=x', '=?utf-8?q?attachment?='])(
    '%s takes the body away',
    async (disposition) => {
      const raw = await signed(['Content-Type: text/plain'], ['Hello'], all)
      expect(await outcome(`Content-Disposition: ${disposition}\r\n${raw}`)).toEqual(flawed('Content-Disposition is not signed'))
    },
  )

  test('inline says nothing', async () => {
    expect(await outcome(await signed(['Content-Type: text/plain', 'Content-Disposition: inline'], ['Hello']))).toEqual(counts)
  })
})

describe('spaces that a relaxed signature does not see', () => {
  const type = 'Content-Type: multipart/mixed; boundary="b-c"'
  const body = [
    '--b-c',
    'Content-Type: text/plain',
    '',
    'First',
    '--b-c',
    'Content-Type: text/plain',
    '',
    'Your code is 493817',
    '--b-c--',
  ]

  test.each([
    [
      'after a delimiter',
      '\r\n--b-c\r\nContent-Type: text/plain\r\n\r\nYour',
      '\r\n--b-c  \r\nContent-Type: text/plain\r\n\r\nYour',
    ],
    [
      'a tab after a delimiter',
      '\r\n--b-c\r\nContent-Type: text/plain\r\n\r\nYour',
      '\r\n--b-c\t\r\nContent-Type: text/plain\r\n\r\nYour',
    ],
    [
      'many',
      '\r\n--b-c\r\nContent-Type: text/plain\r\n\r\nYour',
      `\r\n--b-c${' '.repeat(900)}\r\nContent-Type: text/plain\r\n\r\nYour`,
    ],
    ['after the first delimiter', '\r\n\r\n--b-c\r\n', '\r\n\r\n--b-c \r\n'],
    ['after the last delimiter', '--b-c--', '--b-c-- '],
    ['in the line after a header', 'text/plain\r\n\r\nYour', 'text/plain\r\n \r\nYour'],
    ['in the line after a header, and after its fields', 'text/plain\r\n\r\nYour', 'text/plain \r\n\t\r\nYour'],
  ])('%s: the message is not verified', async (_, before, after) => {
    const raw = await signed([type], body, all)
    expect(await outcome(raw)).toEqual(counts)
    expect(raw).toContain(before)
    expect(await outcome(raw.replace(before, after))).toEqual(flawed('ambiguous'))
  })

  test('do not matter elsewhere', async () => {
    const text = ['Hello  ', ' ', '-- ', 'The bank', '----  ', ' ', '--Bob  Smith ', '']
    expect(await outcome(await signed([type], [...body.slice(0, 3), ...text, ...body.slice(4)], all))).toEqual(counts)
    expect(await outcome(await signed(['Content-Type: text/plain'], [...text, '--x ', ' ', 'boundary=x'], all))).toEqual(counts)
  })

  test('a text may hold the source of a program', async () => {
    for (const text of [
      ['--- a/mail.py', '+++ b/mail.py', '-    boundary = make(a, b)', '+    boundary = make(b, a)'],
      ['--- a/x.js', '+++ b/x.js', '+  const boundary = "----x" + id'],
      ['--- a/x.ts', '+++ b/x.ts', '+  const flowed = "format=flowed"'],
    ])
      expect(await outcome(await signed([type], [...body.slice(0, 3), ...text, ...body.slice(4)], all))).toEqual(counts)
  })

  test.each([
    ['longer than it may be', 'b'.repeat(71), 'b'.repeat(71)],
    ['much longer', 'b'.repeat(250), 'b'.repeat(250)],
    ['longer than the part of a line that is looked at', 'b'.repeat(310), 'b'.repeat(310)],
    ['with an escape', String.raw`"\b"`, 'b'],
    ['an encoded word', '"=?utf-8?q?b?="', 'b'],
    ['behind a comment', '(c)b', 'b'],
    ['before a comment', 'b(c)', 'b'],
  ])('after a delimiter whose boundary is %s', async (_, boundary, read) => {
    const parts = ['--o', `Content-Type: multipart/mixed; boundary=${boundary}`, '', `--${read}`, '', 'a', `--${read}`, '', 'b']
    const lines = [...parts, `--${read}--`, '--o--']
    const raw = await signed(['Content-Type: multipart/mixed; boundary=o'], lines, all)
    const forged = raw.replace(`a\r\n--${read}\r\n`, `a\r\n--${read} \r\n`)
    expect(forged).not.toBe(raw)
    expect(await outcome(forged)).toEqual(flawed('ambiguous'))
  })

  const flowed = 'Content-Type: text/plain; format=flowed'
  const delsp = `${flowed}; delsp=yes`

  test.each([
    ['two numbers, and takes the space out', delsp, 'code is 493', '817', ' '],
    ['two words, and takes the space out', delsp, 'code is AB12', 'CD34', ' '],
    ['two numbers, and leaves one of two', delsp, 'code is 493', '817', '  '],
    ['two numbers', flowed, 'code is 493', '817', ' '],
    ['two numbers that are quoted', flowed, '> code is 493', '> 817', ' '],
    ['two numbers, one of them stuffed', flowed, 'code is 493', ' 817', '  '],
  ])('at the end of a line that flows join %s', async (_, line, first, second, space) => {
    const message = [`Your ${first}`, second, 'Bye']
    const inPart = ['--b-c', line, '', ...message, '--b-c', 'Content-Type: text/html', '', '<p>1 ', '2</p>', '--b-c--']
    for (const [header, lines] of [
      [line, message],
      [type, inPart],
    ] as const) {
      const raw = await signed([header], [...lines], all)
      expect(await outcome(raw)).toEqual(counts)
      expect(await outcome(raw.replace(`${first}\r\n`, `${first}${space}\r\n`))).toEqual(flawed('format=flowed'))
    }
  })

  test('at the end of a line that flows are usual', async () => {
    const text = ['Hello, this is the bank,  ', 'and you may come  ', 'on 3 ', 'days.', '-- ', 'The bank']
    expect(await outcome(await signed([flowed], text, all))).toEqual(counts)
    expect(await outcome(await signed([delsp], [...text.slice(0, 2), ...text.slice(3)], all))).toEqual(counts)
    expect(await outcome(await signed(['Content-Type: text/plain'], ['493 ', '817'], all))).toEqual(counts)
  })

  test('are seen by a simple signature', async () => {
    const simple = { headerList: all, canonicalization: 'relaxed/simple' }
    const raw = await sign(mail([type], ['--b-c ', ...body]), 'bank.test', 's', rsa, simple)
    expect(await outcome(raw.toString())).toEqual(counts)
  })

  const nested = [
    '--o',
    'Content-Type: multipart/alternative;',
    ' boundary = "i i"',
    '',
    '--i i',
    'Content-Type: text/plain',
    '',
    'Your code is 493817',
    '--i i--',
    '--o--',
  ]
  const plain = body.map((line) => line.replace('b-c', 'b c'))
  const spaced = { ...flawed('ambiguous'), reason: expect.stringContaining('boundary contains white space') }

  test.each([
    ['is refolded', 'boundary="b c"', plain, 'relaxed/relaxed', 'b c"', 'b\tc"'],
    ['is refolded, under a simple body', 'boundary="b c"', plain, 'relaxed/simple', 'b c"', 'b\r\n  c"'],
    ['is at the end of one', 'boundary="b "', plain, 'relaxed/relaxed', 'b "', 'b  "'],
    ['is written bare', 'boundary=b c', plain, 'relaxed/relaxed', 'b c', 'b\tc'],
    ['is continued', 'boundary*0="b ";boundary*1=c', plain, 'relaxed/relaxed', 'b "', 'b  "'],
    ['is in a part', 'boundary=o', nested, 'relaxed/relaxed', '"i i"', '"i  i"'],
    ['is in a part, with much of it', 'boundary=o', nested, 'relaxed/relaxed', ' = "i i"', `${' '.repeat(50)}= "i  i"`],
  ])('white space in a boundary that %s', async (_, boundary, parts, canonicalization, before, after) => {
    const message = mail([`Content-Type: multipart/mixed; ${boundary}`], parts)
    const raw = (await sign(message, 'bank.test', 's', rsa, { headerList: all, canonicalization })).toString()
    for (const one of [raw, raw.replace(before, after)]) expect(await outcome(one)).toEqual(spaced)
    expect(raw).toContain(before)
    const strict = { headerList: all, canonicalization: 'simple/simple' }
    expect(await outcome((await sign(message, 'bank.test', 's', rsa, strict)).toString())).toEqual(counts)
  })

  test('a text may name a boundary that has some', async () => {
    const quoted = ['You wrote:', '', 'Content-Type: multipart/mixed; boundary="b c"', '']
    expect(await outcome(await signed([type], [...body.slice(0, 3), ...quoted, ...body.slice(4)], all))).toEqual(counts)
    expect(await outcome(await signed(['Content-Type: text/plain; x="boundary= b c"'], quoted, all))).toEqual(counts)
  })
})
