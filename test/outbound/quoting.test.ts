import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Email } from '../../src/mail/model.ts'
import { withForwarded, withReplyQuote } from '../../src/outbound/compose/quoting.ts'

const original = {
  from: 'sam@sender.test',
  from_name: 'Sam',
  subject: 'Lunch?',
  received_at: '2026-11-20T10:05:00Z',
  direction: 'inbound',
  send_at: null,
  recipients: { to: [{ address: 'ada@pillarbox.test', name: 'Ada' }], cc: [], bcc: [] },
  cc: [],
  text: 'Lunch at noon?',
  body_text: 'Lunch at noon?',
  body_html: null,
} as unknown as Email

test.each([
  [
    '<!DOCTYPE html>\n<html lang="en"><head><title>Lunch</title><style>p {}</style></head><body class="x"><p>Noon?</p></body></html>',
    '\n<style>p {}</style><p>Noon?</p>',
  ],
  ['<header>a</header><bodyguard>b</bodyguard>', '<header>a</header><bodyguard>b</bodyguard>'],
  ['<meta charset="utf-8"/><base href="https://a.test/">c', 'c'],
  ['<title>a<b>c</b></title>d', '<title>a<b>c</b></title>d'],
  ['<title lang="en">a</title>b', 'b'],
  ['<body title="a < b">c', 'c'],
  ['a <body b', 'a <body b'],
])('of the HTML %j what is forwarded is %j', (html, kept) => expect(forwarded(html)).toBe(kept))

test('what stands around the content goes as these expressions say, which take the square of the length', () => {
  const piece = fc.constantFrom(
    '<!doctype',
    '<title',
    '</title>',
    '<body',
    '</head',
    '<meta',
    ' a',
    '<',
    '>',
    '/',
    'b',
    '<b>',
    '\n',
  )
  fc.assert(
    fc.property(fc.string({ unit: piece, maxLength: 14 }), (html) => {
      const kept = html
        .replaceAll(/<!doctype[^>]*>/gi, '')
        .replaceAll(/<title\b[^<>]*>[^<]*<\/title>/gi, '')
        .replaceAll(/<\/?(?:html|head|body|meta|base)\b[^>]*>/gi, '')
      expect(forwarded(html)).toBe(kept)
    }),
    { numRuns: 5000 },
  )
})

test.each(['<body ', '<!doctype', '<title', '<title>', '<title ><', '</head x ', '<'])(
  'ten million characters of %j are looked at once',
  (piece) => {
    const html = piece.repeat(10_000_000 / piece.length)
    expect(forwarded(html)).toBe(html)
  },
)

test('an answer stays as it is before the quote, which an empty line sets off, also with ten million spaces in it', () => {
  expect(withReplyQuote({ text: 'Yes. \n\u00a0', html: null }, original).text).toMatch(/^Yes\. \n\u00a0\n\nOn Fri, 20 Nov 2026/)
  expect(withReplyQuote({ text: 'Yes.\r\n', html: null }, original).text).toMatch(/^Yes\.\r\n\nOn Fri, 20 Nov 2026/)
  const text = `a${' '.repeat(10_000_000)}b`
  expect(withReplyQuote({ text, html: null }, original).text!.startsWith(`${text}\n\nOn `)).toBe(true)
})

/** What is kept of the HTML of a message that is passed on. */
function forwarded(body_html: string): string {
  const { html } = withForwarded({ text: null, html: '' }, { ...original, body_html })
  return html!.slice(html!.indexOf('</div><br>') + '</div><br>'.length)
}
