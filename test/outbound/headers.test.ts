import fc from 'fast-check'
import { simpleParser } from 'mailparser'
import { afterAll, describe, expect, test } from 'vitest'
import { runs } from '../support/runs.ts'
import { database, field, openPair, pair, send, source } from './outgoing.ts'

const evil = 'evil@evil.test'

/** Ways to get a header field, a recipient or a body of one's own into a message. */
const vectors: [string, Record<string, unknown>, string][] = [
  ['subject CRLF', { subject: `x\r\nBcc: ${evil}` }, 'subject'],
  ['subject LF', { subject: `x\nBcc: ${evil}` }, 'subject'],
  ['subject CR', { subject: `x\rBcc: ${evil}` }, 'subject'],
  ['to CRLF and a command', { to: `b@pillarbox.test>\r\nRCPT TO:<${evil}` }, 'to'],
  ['to CRLF in the name', { to: `x\r\nBcc: ${evil} <b@pillarbox.test>` }, 'to'],
  ['to a list in one text', { to: `b@pillarbox.test, ${evil}` }, 'to'],
  ['to a group', { to: `g: b@pillarbox.test, ${evil};` }, 'to'],
  ['to two pairs of brackets', { to: `<b@pillarbox.test> <${evil}>` }, 'to'],
  ['to an address for a name', { to: `${evil} <b@pillarbox.test>` }, 'to'],
  ['cc CRLF', { cc: `b@pillarbox.test\r\nBcc: ${evil}` }, 'cc'],
  ['bcc CRLF', { bcc: `b@pillarbox.test\r\nX: ${evil}` }, 'bcc'],
  ['reply_to CRLF', { reply_to: `b@pillarbox.test\r\nBcc: ${evil}` }, 'reply_to'],
  ['header name CRLF', { headers: { 'X-A\r\nBcc': evil } }, 'headers.X-A\r\nBcc'],
  ['header name colon', { headers: { 'Bcc: x\t': evil } }, 'headers.Bcc: x\t'],
  ['header value CRLF', { headers: { 'X-A': `v\r\nBcc: ${evil}` } }, 'headers.X-A'],
  ['header value bare LF', { headers: { 'X-A': `v\nBcc: ${evil}` } }, 'headers.X-A'],
  ['In-Reply-To CRLF', { headers: { 'In-Reply-To': `<x>\r\nBcc: ${evil}` } }, 'headers.In-Reply-To'],
  ['References no ids', { headers: { References: `<x> Bcc: ${evil}` } }, 'headers.References'],
  ['filename CRLF', { attachments: [{ filename: 'x"\r\nX-Inj: 1\r\n\r\n.txt', content: '' }] }, 'attachments[0].filename'],
  [
    'content type CRLF',
    { attachments: [{ filename: 'x', content: '', content_type: 'text/plain\r\nX: 1' }] },
    'attachments[0].content_type',
  ],
  [
    'content type with a boundary',
    { attachments: [{ filename: 'x', content: '', content_type: 'multipart/mixed; boundary=a' }] },
    'attachments[0].content_type',
  ],
  ['content id CRLF', { attachments: [{ filename: 'x', content: '', content_id: 'a>\r\nX: 1' }] }, 'attachments[0].content_id'],
]

const refused = [
  'From',
  'Sender',
  'To',
  'cc',
  'BCC',
  'Date',
  'Message-ID',
  'Return-Path',
  'Received',
  'DKIM-Signature',
  'DKIM-Anything',
  'ARC-Seal',
  'Authentication-Results',
  'MIME-Version',
  'Content-Type',
  'content-anything',
]

describe('header fields', async () => {
  const { world: shared, close } = await openPair()
  afterAll(close)

  test.each(vectors)('%s is refused, and the parameter named', async (_, input, param) => {
    const world = shared
    const { status, body } = await send(world, { to: world.bob.email, ...input })
    expect([status, body.error]).toMatchObject([400, { type: 'invalid_request', param }])
    expect(database(world.box, (db) => db.prepare('SELECT count(*) AS n FROM emails').get())).toEqual({ n: 0 })
  })

  test.each(refused)('%s is the box’s own', async (name) => {
    const world = shared
    const { status, body } = await send(world, { to: world.bob.email, headers: { [name]: 'x' } })
    expect([status, body.error]).toMatchObject([400, { param: `headers.${name}`, code: 'header_refused' }])
  })

  test('others go out as they are given, folded where they are long', async () => {
    const world = await pair()
    const headers = {
      'X-Mood': 'grün, sehr grün',
      'List-Unsubscribe': `<https://box.test/${'u'.repeat(400)}>, <mailto:leave@box.test>`,
      'X-Words': Array.from({ length: 200 }, (_, index) => `word${index}`).join(' '),
      References: '<1@elsewhere.test> <2@elsewhere.test>',
      'In-Reply-To': '<2@elsewhere.test>',
      'Reply-To': 'Desk <desk@pillarbox.test>',
      'Auto-Submitted': 'auto-generated',
    }
    const { body } = await send(world, { to: world.bob.email, headers })
    expect(body).toMatchObject({
      reply_to: 'desk@pillarbox.test',
      in_reply_to: '<2@elsewhere.test>',
      references: ['<1@elsewhere.test>', '<2@elsewhere.test>'],
      automated: true,
    })
    const raw = await source(world, body.id)
    expect(field(raw, 'x-words')).toBe(headers['X-Words'])
    expect(field(raw, 'list-unsubscribe')).toBe(headers['List-Unsubscribe'])
    expect(field(raw, 'x-mood')).toBe('=?UTF-8?Q?gr=C3=BCn=2C_sehr_gr=C3=BCn?=')
    expect(Math.max(...raw.split('\r\n').map((line) => line.length))).toBeLessThanOrEqual(998)
  })

  test('a NUL is refused wherever it stands', async () => {
    for (const input of [{ subject: 'x\0y' }, { body: 'x\0y' }, { headers: { 'X-A': '\0' } }]) {
      expect((await send(shared, { to: shared.bob.email, ...input })).status).toBe(400)
    }
  })

  test('what stands in both places, or cannot be in a line, is refused', async () => {
    const world = shared
    const twice = await send(world, { to: world.bob.email, subject: 'a', headers: { Subject: 'b' } })
    expect([twice.status, twice.body.error['param']]).toEqual([400, 'subject'])
    const long = await send(world, { to: world.bob.email, headers: { 'X-Long': 'x'.repeat(1000) } })
    expect([long.status, long.body.error['param']]).toEqual([400, 'headers.X-Long'])
  })
})

test('whatever is written is what is read', async () => {
  const world = await pair({ PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '0' })
  const piece = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      '=?utf-8?Q?a?=',
      ' ',
      '\t',
      '\n',
      '\r',
      '.',
      '\n.\n',
      'From ',
      '"',
      '\\',
      'é',
      '漢字',
      '👩‍👧',
      'x'.repeat(1200),
      '\u2028',
      '<b>&amp;',
    ),
  )
  const words = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('').replaceAll('\0', '').toWellFormed())
  // eslint-disable-next-line no-control-regex -- these are refused, see above
  const line = words.map((text) => text.replaceAll(/[\0-\x1f\x7f]/g, ''))
  // readers decode what looks like an encoded word in a file name, though it is none
  const name = line.map(
    (text) =>
      text
        .slice(0, 80)
        .toWellFormed()
        .replaceAll(/[/\\]|=\?/g, '')
        .trim() || 'x',
  )
  await fc.assert(
    fc.asyncProperty(line, words, words, name, async (subject, text, html, filename) => {
      const input = { subject, body_text: text, body_html: html, attachments: [{ filename, content: 'aGk=' }] }
      const { status, body } = await send(world, { to: world.bob.email, ...input })
      expect(status).toBe(201)
      const raw = await source(world, body.id)
      expect(raw).not.toMatch(/\r(?!\n)|(?<!\r)\n/)
      expect(Math.max(...raw.split('\r\n').map((one) => one.length))).toBeLessThanOrEqual(998)
      const mail = await simpleParser(Buffer.from(raw, 'latin1'), {
        skipTextToHtml: true,
        skipHtmlToText: true,
        skipImageLinks: true,
      })
      expect(squeezed(mail.subject ?? '')).toBe(squeezed(subject))
      expect(ended(mail.text ?? '')).toBe(ended(text))
      expect(ended(mail.html || '')).toBe(ended(html))
      expect(mail.attachments.map((file) => [file.filename, file.content.toString()])).toEqual([[filename, 'hi']])
    }),
    { numRuns: runs(25) },
  )
})

// a field's own white space folds
function squeezed(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').trim()
}

// line ends are those of mail, and a part ends its last line or not
function ended(text: string): string {
  return text.replaceAll(/\r\n?/g, '\n').replace(/\n+$/, '')
}
