import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { headersOf } from '../../src/message/headers.ts'
import { parseWithLibrary } from '../../src/message/mime/mailparser.ts'
import { upToLineLimit } from '../../src/message/mime/mime.ts'
import type { Mime } from '../../src/message/mime/model.ts'
import { plainMime } from '../../src/message/mime/plain.ts'
import { pick, type Random, randomFrom } from '../support/random.ts'

// FUZZ_ROUNDS=100000 for a long run
const rounds = Number(process.env['FUZZ_ROUNDS'] ?? 4000)

const folder = new URL('../fixtures/mail/', import.meta.url)
const fixtures = readdirSync(folder)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => readFileSync(new URL(name, folder)))

const types = [
  'text/plain',
  'text/html',
  'Text/Plain; charset=utf-8',
  'text/plain; charset="us-ascii"',
  'application/pdf; name="a.pdf"',
  'text/plain; name=x.txt',
  'message/rfc822',
  'message/delivery-status',
  'text/calendar; method=REQUEST',
  'image/png',
  'text',
  'text/plain; charset=latin1',
  'text/plain; format=flowed',
  'application/octet-stream',
  'text/plain;',
  'text/plain; charset=utf-8; charset=x',
]
const structures = [
  'multipart/mixed; boundary=B',
  'multipart/alternative; boundary="C"',
  'multipart/related; boundary=BB',
  'multipart/mixed; boundary="B B"',
  'multipart/report; report-type=delivery-status; boundary=D',
  'text/html; boundary=B',
  'multipart/mixed',
  'multipart/mixed;\r\n\tboundary="B"',
]
const dispositions = [
  'inline',
  'attachment',
  'attachment; filename=a.txt',
  'inline; filename="b c.png"',
  'attachment;\r\n filename="x  y.pdf"',
  'form-data; name=x',
  "attachment; filename*=utf-8''%41",
  'inline; filename=""',
  'ATTACHMENT; FileName=Q.doc',
]
const encodings = ['7bit', 'base64', 'quoted-printable', 'BASE64', '8bit', 'x-y', ' base64 ', 'binary', 'base64 (c)']
const ids = ['<a@b>', 'a@b', '< a >', '<a b>', '<>', '<x>y']
const bodies = [
  'hello\r\n',
  'hello',
  '',
  '\r\n',
  '\r\n\r\n',
  'SGVsbG8=\r\n',
  'SGVsbG8\r\n',
  'SGVs bG8=\r\n',
  'YQ==YQ==',
  '=41=\r\n b  \r\n',
  '=C3=A9 x',
  'é\r\n',
  '--\r\n',
  '-- \r\nsig\r\n',
  '<p>hi</p>\r\n',
  '\n',
  'a\rb\r\n',
  '----B\r\n',
  '\0\r\n',
  'SGVs-_8=\r\n',
]
const delimiters = [
  '--B\r\n',
  '--B--\r\n',
  '--C\r\n',
  '--C--\r\n',
  '--BB\r\n',
  '--BB--\r\n',
  '--B \r\n',
  '--B--',
  '--B',
  '--B\n',
  '--B\rx\r\n',
  '\r--B\r\n',
  '--D--\r\n',
  '--B--x\r\n',
]
const pieces = [
  '\r\n',
  '\n',
  '\r',
  '--',
  '=',
  ';',
  '"',
  ' ',
  '\t',
  '(',
  '\0',
  '\r\n\r\n',
  '/',
  'boundary=',
  '=?utf-8?Q?a?=',
  '--\r\n',
  '\r\n--',
  'é',
]

/** A message whose parts may be in any disorder. */
function disordered(random: Random): Buffer {
  const head = (): string =>
    [
      random(8) ? `Content-Type: ${pick([...types, ...structures], random)}\r\n` : '',
      random(3) ? '' : `Content-Disposition: ${pick(dispositions, random)}\r\n`,
      random(2) ? '' : `Content-Transfer-Encoding: ${pick(encodings, random)}\r\n`,
      random(4) ? '' : `Content-ID: ${pick(ids, random)}\r\n`,
      random(30) ? '' : pick(delimiters, random),
    ].join('')
  const body = (depth: number): string => {
    if (depth > 3 || random(3) > 0) return pick(bodies, random) + pick(bodies, random)
    const parts = Array.from(
      { length: random(5) },
      () => `${pick(delimiters, random)}${head()}\r\n${body(depth + 1)}${pick(['\r\n', ''], random)}`,
    )
    return `${pick(bodies, random)}${parts.join('')}${pick(delimiters, random)}`
  }
  return Buffer.from(`Subject: x\r\n${head()}\r\n${body(0)}`)
}

/** A message that is formed as it should be. */
function formed(random: Random): Buffer {
  let boundaries = 0
  const part = (depth: number): string => {
    if (depth > 3 || (depth > 0 && random(2) === 0)) {
      const encoding = pick(['7bit', 'base64', 'quoted-printable', '8bit'], random)
      const body = pick(bodies, random) + pick(bodies, random)
      return [
        random(6) ? `Content-Type: ${pick(types, random)}\r\n` : '',
        random(2) ? `Content-Disposition: ${pick(dispositions, random)}\r\n` : '',
        random(3) ? '' : `Content-ID: ${pick(ids, random)}\r\n`,
        `Content-Transfer-Encoding: ${encoding}\r\n\r\n`,
        encoding === 'base64' ? Buffer.from(body).toString('base64') : body,
      ].join('')
    }
    const boundary = `b${boundaries++}`
    const subtype = pick(['mixed', 'alternative', 'related', 'report', 'x'], random)
    const parts = Array.from({ length: random(3) + 1 }, () => `\r\n--${boundary}\r\n${part(depth + 1)}`)
    return `Content-Type: multipart/${subtype}; boundary="${boundary}"\r\n\r\n${parts.join('')}\r\n--${boundary}--${pick(['\r\n', '', '\r\nend\r\n'], random)}`
  }
  return Buffer.from(`Subject: y\r\n${part(0)}`)
}

/** A fixture with something cut, put in, or put elsewhere. */
function mutated(random: Random): Buffer {
  let raw = pick(
    fixtures.filter(({ length }) => length < 20_000),
    random,
  )
  for (let times = random(4); times >= 0; times--) {
    const [at, from] = [random(raw.length + 1), random(raw.length + 1)]
    const [before, after] = [raw.subarray(0, at), raw.subarray(at)]
    raw = pick(
      [
        Buffer.concat([before, after.subarray(random(40))]),
        Buffer.concat([before, Buffer.from(pick(pieces, random)), after]),
        Buffer.concat([before, raw.subarray(from, from + 60), after]),
        before,
      ],
      random,
    )
  }
  return raw
}

const kinds = { disordered, formed, mutated }

/** How many of the messages are read here, and those of them that the library reads in another way. */
async function compared(messages: Iterable<Buffer>): Promise<{ read: number; different: string[] }> {
  let read = 0
  const different: string[] = []
  for (const message of messages) {
    const raw = upToLineLimit(message)
    const fields = headersOf(raw)
    // the library loses the last octet of a subject in UTF-8 that ends with A0
    if (fields.some(({ name, value }) => name === 'subject' && Buffer.from(value).at(-1) === 0xa0)) continue
    const own = plainMime(raw, fields)
    if (own === null) continue
    read += 1
    const other = await parseWithLibrary(raw, fields).then(seen, String)
    if (seen(own) !== other) different.push(JSON.stringify([raw.toString(), other, seen(own)]))
  }
  return { read, different }
}

function seen(mime: Mime): string {
  const { subject, text, html, areSeparateBodies, isCut } = mime
  const files = mime.files.map(({ contentType, filename, contentDisposition, cid, related, size, checksum, content }) => {
    return [contentType, filename, contentDisposition, cid, related, size, checksum, content.toString('hex')]
  })
  return JSON.stringify({ subject, text, html, areSeparateBodies, isCut, files })
}

test('the fixtures are read as by the library, most of them without it', async () => {
  const { read, different } = await compared(fixtures)
  expect(different).toEqual([])
  expect(read).toBeGreaterThan(fixtures.length / 2)
})

test.each(Object.entries(kinds))('%s messages are read as by the library, or left to it', async (_kind, message) => {
  const random = randomFrom(Number(process.env['FUZZ_SEED'] ?? 20261125))
  const { read, different } = await compared(Array.from({ length: rounds / 4 }, () => message(random)))
  expect(different).toEqual([])
  expect(read).toBeGreaterThan(rounds / 100)
})

test('a subject of words without letters is none', async () => {
  const { read, different } = await compared([Buffer.from('Subject: =?utf-8?B??=\r\n\r\nhello\r\n')])
  expect({ read, different }).toEqual({ read: 1, different: [] })
})

test('a large attachment is the same in pieces', async () => {
  const content = Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => (at * at) % 251))
  for (const width of [76, 75, 4]) {
    const encoded = content.toString('base64').replaceAll(new RegExp(`.{${width}}`, 'g'), '$&\r\n')
    const raw = Buffer.from(
      `Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\n${encoded}\r\n--b--\r\n`,
    )
    const { different } = await compared([raw])
    expect(different).toEqual([])
  }
})
