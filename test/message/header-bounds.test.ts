import { MailParser } from 'mailparser'
import { expect, onTestFinished, test, vi } from 'vitest'
import { importHintsIn } from '../../src/mail/archive.ts'
import { mailboxes } from '../../src/message/addresses.ts'
import { readHeader } from '../../src/mailauth/author.ts'
import type { Lookup } from '../../src/net/dns.ts'
import { parse } from '../../src/message/parse.ts'
import { checkMessage } from '../../src/mailauth/verdict.ts'
import { envelope } from '../support/signed-mail.ts'

const settings = { hostname: 'mx.test', dmarc: 'reject' as const, deadline: 15_000, trusted_sealers: [] }

const from = 'From: a@b.test\r\n'
const signature = (names: string, domain = 'b.test') =>
  `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=${domain}; s=s; h=${names}; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AAAA\r\n`

const nowhere: Lookup = async () => {
  throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
}

const authenticationOf = async (header: string) =>
  (await checkMessage(Buffer.from(`${header}\r\nhello\r\n`), envelope(), nowhere, settings)).authentication

test.each([
  ['folded 6000 times', `X-Pad: a${'\r\n a'.repeat(6000)}\r\n`],
  ['with 6000 lines that are no fields', 'x\r\n'.repeat(6000)],
  ['with 6000 fields', 'a:\r\n'.repeat(6000)],
  ['whose From is of 100,000 characters', `From: ${'g:;'.repeat(34_000)}\r\n`],
])('a header %s is not given to the verifier of signatures', async (_, lines) => {
  const { dkim, dmarc } = await authenticationOf(signature('from') + lines + from)
  expect(dkim).toEqual([])
  expect(dmarc).toMatchObject({ result: 'fail', reason: 'the header is too long' })
})

test('a header of 4000 lines is', async () => {
  const { dkim } = await authenticationOf(`${signature('from')}X-Pad: a${'\r\n a'.repeat(4000)}\r\n${from}`)
  expect(dkim).toMatchObject([{ result: 'fail', domain: 'b.test' }])
})

test('a signature that names more fields than any does is passed over, and the others are not', async () => {
  const many = signature(`from${':x'.repeat(300)}`, 'many.test')
  expect((await authenticationOf(many + signature('from:to') + from)).dkim).toMatchObject([{ domain: 'b.test' }])
  const seals =
    'ARC-Seal: i=1; cv=none; a=rsa-sha256; d=b.test; s=s; b=A\r\nARC-Authentication-Results: i=1; b.test; dmarc=pass\r\n' +
    `ARC-Message-Signature: i=1; a=rsa-sha256; d=b.test; s=s; h=from${':x'.repeat(300)}; bh=A; b=A\r\n`
  expect((await authenticationOf(seals + from)).arc).toMatchObject({ result: 'fail', chain: 0 })
})

const blanks = `${' '.repeat(900)}\r\n`.repeat(250)
const seal = (tag: string) =>
  `ARC-Seal: i=1; cv=none; a=rsa-sha256; d=b.test; s=s; b=A${tag}\r\nARC-Authentication-Results: i=1; b.test; dmarc=pass\r\n`
const sealed = (tag: string) => `ARC-Message-Signature: i=1; a=rsa-sha256; d=b.test; s=s; h=from; bh=A; b=A${tag}\r\n`

test.each([
  ['in a tag of a signature', `${signature('from').trimEnd()}; x=a${blanks} y\r\n`],
  ['in the name of a tag', `${signature('from').trimEnd()}; x${blanks} y=a\r\n`],
  ['in a line that is no field, after a signature', `${signature('from')}x${blanks.replaceAll('\r\n', '')}y\r\n`],
  ['in a first line that is no field', `x${blanks} y\r\n${signature('from')}`],
  ['or dots, in a domain', signature('from', `a${'.'.repeat(200_000)}test`)],
  ['in many fields', `${signature('from')}${`X-Pad: a${' '.repeat(1500)}b\r\n`.repeat(100)}`],
])('of a header with long runs of blanks %s no signature is looked at', async (_, lines) => {
  expect(await authenticationOf(lines + from)).toMatchObject({ dkim: [], arc: { result: 'none' } })
})

test('an author at a domain of dots is none that could be verified', async () => {
  const { dmarc } = await authenticationOf(`From: a@b${'.'.repeat(60_000)}c\r\n`)
  expect(dmarc).toMatchObject({ result: 'fail', reason: 'the From field is ambiguous' })
})

test.each([
  ['ARC-Seal', seal(`; x=a${blanks} y`) + sealed('')],
  ['ARC-Message-Signature', seal('') + sealed(`; x=a${blanks} y`)],
])('and a chain with them in %s fails, with a reason', async (_, lines) => {
  const reason = 'the header has too long runs of blanks or dots'
  expect(await authenticationOf(lines + from)).toMatchObject({ dkim: [], arc: { result: 'fail', chain: 0, reason } })
})

test('blanks as a line may have them are no reason', async () => {
  const { dkim } = await authenticationOf(`${signature('from')}X-Pad: a${' '.repeat(990)}\r\n${' '.repeat(990)}b\r\n${from}`)
  expect(dkim).toMatchObject([{ domain: 'b.test' }])
})

test('of a list of addresses 64 Ki characters are read, up to a comma', () => {
  const empty = 'g:;,'.repeat(16_380)
  expect(mailboxes([`${empty}ada@box.test, bob@box.test`])).toMatchObject([{ address: 'ada@box.test' }])
  expect(mailboxes([`${empty.repeat(4)}ada@box.test`])).toEqual([])
  expect(mailboxes([empty.repeat(4), 'ada@box.test'])).toEqual([])
  expect(mailboxes(['x'.repeat(100_000)])).toEqual([])
  expect(mailboxes(Array.from({ length: 2000 }, () => 'g:;').concat('ada@box.test'))).toEqual([])
})

test('an address has a thousand octets at most, and a name a thousand characters', () => {
  const local = 'é'.repeat(495)
  expect(mailboxes([`${local}@box.test, ada@box.test`])).toMatchObject([
    { address: `${local}@box.test` },
    { address: 'ada@box.test' },
  ])
  expect(mailboxes([`a${local}b@box.test, ada@box.test`])).toMatchObject([{ address: 'ada@box.test' }])
  const [named] = mailboxes([`${'n'.repeat(999)}\u{1f600}${'n'.repeat(60_000)} <ada@box.test>`])
  expect(named).toEqual({ address: 'ada@box.test', name: 'n'.repeat(999) })
})

test.each([
  ['ada@box.test', 'ada@box.test'],
  [`${'a'.repeat(60_000)}@box.test`, undefined],
])('the sender of an imported message has 320 characters at most: %#', async (address, sender) => {
  const hints = await importHintsIn(Buffer.from(`Return-Path: <${address}>\r\n\r\n`))
  expect(hints.sender).toBe(sender)
})

test('nobody is the author of a From that is longer', () => {
  const header = readHeader(Buffer.from(`From: ${'g:;'.repeat(34_000)} a@b.test\r\n\r\n`))
  expect(header.complete).toBe(false)
})

test('addresses are read once: not by the parser of bodies too, neither of a message nor of its parts', async () => {
  const read = vi.spyOn(MailParser.prototype as unknown as { decodeAddresses(): void }, 'decodeAddresses')
  onTestFinished(() => read.mockRestore())
  const groups = 'g:;'.repeat(10_000)
  const lists = ['To', 'Cc', 'Reply-To', 'Delivered-To'].map((name) => `${name}: ${groups}`)
  const [text, html] = ['text/plain', 'text/html'].map(
    (type) => `--b\r\nTo: ${groups}\r\nContent-Type: ${type}\r\n\r\n<p>hello</p>`,
  )
  const raw = [
    'From: a@b.test',
    ...lists,
    'Subject: x',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    text,
    html,
    '--b--',
    '',
  ].join('\r\n')
  expect(await parse(Buffer.from(raw))).toMatchObject({ subject: 'x', to: [], body_text: expect.stringContaining('hello') })
  expect(read).not.toHaveBeenCalled()
})

interface Node {
  headers: { lines: { line: string }[] }
}

test.each([
  ['in a line without a colon', `X: y\r\nZ\r\n${' \r\n'.repeat(80_000)} z\r\n`, []],
  ['in the first line', `Z\r\n${' \r\n'.repeat(80_000)} z\r\n`, []],
  ['in 60,000 fields', 'a:\r\n'.repeat(60_000), []],
  ['of lone CRs', `Content-Location: ${'\r'.repeat(240_000)}x\r\n`, ['content-location: x']],
  [
    'in a field that is read',
    `Content-Disposition: inline;\r\n${' \r\n'.repeat(80_000)} filename=a.txt\r\n`,
    ['content-disposition: inline; filename=a.txt'],
  ],
])(
  'of the header of a part the parser of bodies is given a line for each field it needs: with 240 KB %s',
  async (_, lines, first) => {
    const create = vi.spyOn(MailParser.prototype as unknown as { createNode(node: Node): unknown }, 'createNode')
    onTestFinished(() => create.mockRestore())
    const part = `--b\r\n${lines}Content-Type: text/plain;\r\n charset=utf-8\r\nContent-Type: text/html\r\n\r\nhello\r\n`
    const raw = `From: a@b.test\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${part.repeat(2)}--b--\r\n`
    expect((await parse(Buffer.from(raw))).parse_error).toBeNull()
    const given = create.mock.calls.map(([{ headers }]) => headers.lines.map(({ line }) => line.replaceAll(/ +/g, ' ').trim()))
    const fields = [...first, 'content-type: text/plain; charset=utf-8']
    expect(given).toEqual([['content-type: multipart/mixed; boundary=b'], fields, fields])
  },
)

test('a subject of lone CRs is read', async () => {
  const raw = Buffer.from(`From: a@b.test\r\nSubject: ${'\r'.repeat(240_000)}x\r\n\r\nhello\r\n`)
  expect(await parse(raw)).toMatchObject({ subject: 'x', parse_error: null })
})

test('the header of a part is read as ever: folded names, raw octets, and the first of two', async () => {
  const raw = [
    'From: a@b.test',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'From someone Fri Nov 20 10:00:00 2020',
    'To: c@d.test',
    'CONTENT-TYPE : application/pdf;',
    '\tname="other.pdf"',
    'Content-Disposition: attachment; filename="Rechnung',
    '\tM\u00E4rz.pdf"',
    'Content-Disposition: inline; filename=second.pdf',
    'Content-ID: <one@b.test>',
    'Content-Transfer-Encoding: base64',
    '',
    'aGVsbG8=',
    '--b--',
    '',
  ].join('\r\n')
  expect((await parse(Buffer.from(raw))).attachments).toMatchObject([
    {
      filename: 'Rechnung M\u00E4rz.pdf',
      content_type: 'application/pdf',
      size: 5,
      content_id: 'one@b.test',
      disposition: 'attachment',
    },
  ])
})
