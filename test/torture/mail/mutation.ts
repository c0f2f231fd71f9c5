import { readdirSync, readFileSync } from 'node:fs'
import { pick, type Random } from '../../support/random.ts'

/** In a field that no mutation touches: in what is read of another field it stands by mistake. */
export const marker = 'ZqXjMarkerOfAnotherField'

/** The messages that mutations begin with. */
export function sourceMessages(): Buffer[] {
  return ['mail', 'reports'].flatMap((name) => {
    const folder = new URL(`../../fixtures/${name}/`, import.meta.url)
    return readdirSync(folder)
      .filter((file) => file.endsWith('.eml'))
      .toSorted()
      .map((file) => readFileSync(new URL(file, folder)))
      .filter((raw) => raw.length < 60_000)
  })
}

/** A message, or a part of one: its fields as written, and what follows the empty line. */
interface Entity {
  fields: string[]
  body: string
}

/** Latin-1 stands for the bytes throughout. */
type Mutation = (text: string, random: Random, sources: readonly string[]) => string

/** A message with several faults at once, in its structure and in its bytes. */
export function mutatedMessage(texts: readonly string[], random: Random): Buffer {
  let text = pick(texts, random)
  for (let times = random(6); times >= 0; times--) {
    const mutate = pick(mutations, random)
    // what grows without end tests memory, not structure
    if (text.length < 400_000) text = mutate(text, random, texts)
  }
  return Buffer.from(`X-Other: ${marker}\r\n${text}`, 'latin1')
}

const pieces = [
  '\r\n',
  '\r\n\r\n',
  '\0',
  '\r',
  '\n',
  '\r\n.\r\n',
  '--',
  '=?utf-8?B?',
  '?=',
  '=?utf-8?Q?=00=0A?=',
  '=?iso-2022-jp?B?GyRC?=',
  '<',
  '>',
  '"',
  '(',
  ')',
  ';',
  ':',
  ',',
  '=',
  '\\',
  '@',
  '\xff\xfe',
  '\xe2\x80\xae',
  '\xf0\x9f',
  '__proto__: {"polluted":1}\r\n',
  'Content-Type: multipart/mixed; boundary="__proto__"\r\n',
  'Content-Type: text/html; charset=__proto__\r\n',
  'Content-Type: message/rfc822\r\n\r\n',
  'Content-Type: text/plain; charset=utf-16; format=flowed; delsp=yes\r\n',
  'Content-Transfer-Encoding: base64\r\n',
  'Content-Transfer-Encoding: quoted-printable\r\n',
  "Content-Disposition: attachment; filename*0*=utf-8''%00%2F..; filename*1=x\r\n",
  'Subject: constructor\r\n',
  'List-__proto__: <mailto:a@b>\r\n',
  '<a href="http://a.test/&#x0;">',
  '<div style="display:none">',
  '<style>*{font-size:0}</style>',
  '<table><tr><td>',
  '<!--',
  '<![CDATA[',
  '&#1114112;',
  'begin 644 x\r\n',
]

const charsets = ['utf-8', 'utf-7', 'utf-16', 'iso-2022-jp', 'gb18030', 'windows-1252', 'x-unknown', 'us-ascii', '']
const encodings = ['base64', 'quoted-printable', '7bit', '8bit', 'binary', 'x-uuencode', 'base64, base64', '']
const types = [
  'text/plain',
  'text/html',
  'text/calendar',
  'multipart/mixed',
  'multipart/alternative',
  'multipart/related',
  'multipart/report; report-type=delivery-status',
  'multipart/digest',
  'message/rfc822',
  'message/delivery-status',
  'message/partial; number=1; total=2; id=x',
  'application/octet-stream',
  'application/zip',
  'application/gzip',
  '/',
]
const names = [
  'From',
  'To',
  'Cc',
  'Subject',
  'Date',
  'Message-ID',
  'In-Reply-To',
  'References',
  'Reply-To',
  'Sender',
  'Received',
  'DKIM-Signature',
  'ARC-Seal',
  'Authentication-Results',
  'List-Unsubscribe',
  'Auto-Submitted',
  'Content-Type',
  'Content-Disposition',
  'Content-Transfer-Encoding',
  'Content-ID',
  'MIME-Version',
]

const mutations: Mutation[] = [
  // bytes
  (text, random) => splice(text, random, ''),
  (text, random) => splice(text, random, pick(pieces, random)),
  (text, random) => splice(text, random, pick(pieces, random).repeat(1 + random(40))),
  (text, random) => splice(text, random, Array.from({ length: random(20) }, () => String.fromCharCode(random(256))).join('')),
  (text, random) => text.slice(0, random(text.length + 1)),
  (text, random, sources) => splice(text, random, pick(sources, random).slice(random(400), 600 + random(400))),
  // fields
  inFields((fields, random) => void fields.splice(random(fields.length + 1), 1)),
  inFields((fields, random) => void fields.splice(random(fields.length + 1), 0, pick(fields, random))),
  inFields((fields, random, sources) => {
    fields.splice(random(fields.length + 1), 0, pick(entityOf(pick(sources, random)).fields, random))
  }),
  inFields((fields, random) => {
    const at = random(fields.length)
    fields[at] = fields[at]!.replace(/^[^:]*/, () => pick(names, random))
  }),
  inFields((fields, random) => {
    const at = random(fields.length)
    const [name = '', value = ''] = fields[at]!.split(/:(.*)/s)
    const inserted = random(2) === 0 ? pick(pieces, random) : value
    fields[at] = `${name}:${splice(value, random, inserted)}`
  }),
  inFields((fields, random) => {
    const at = random(fields.length)
    // folded wherever there is space, and where there is none
    fields[at] = fields[at]!.replace(random(2) === 0 ? / /g : /,|;/g, (found) => `${found}\r\n\t`)
  }),
  inFields((fields, random) => {
    const list = Array.from({ length: 1 + random(300) }, (_, index) => `"a${index}" <a${index}@b.test>`).join(', ')
    fields.push(`${pick(names, random)}: ${list}`)
  }),
  // structure
  withField(
    'Content-Type',
    (random) =>
      `${pick(types, random)}; charset=${pick(charsets, random)}; boundary="${pick(['b', 'c', '', ' ', 'b\r\n c'], random)}"`,
  ),
  withField('Content-Transfer-Encoding', (random) => pick(encodings, random)),
  withField(
    'Content-Disposition',
    (random) =>
      `${pick(['attachment', 'inline', ''], random)}; filename="${pick(pieces, random)}.${pick(['pdf', 'zip', 'html', 'eml'], random)}"`,
  ),
  inParts((parts, random) => void parts.splice(random(parts.length + 1), 1)),
  inParts((parts, random) => void parts.splice(random(parts.length + 1), 0, pick(parts, random))),
  inParts((parts, random, sources) => void parts.splice(random(parts.length + 1), 0, `\r\n${pick(sources, random)}\r\n`)),
  inParts((parts, random) => {
    const at = random(parts.length)
    parts[at] = splice(parts[at] ?? '', random, pick(pieces, random))
  }),
  (text, random) => {
    let nested = text
    for (let depth = 1 + random(60); depth > 0; depth--)
      nested = `Content-Type: multipart/mixed; boundary=n${depth}\r\n\r\n--n${depth}\r\n${nested}\r\n--n${depth}--\r\n`
    return `From: a@b.test\r\n${nested}`
  },
  (text, random) =>
    `From: a@b.test\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: ${pick(encodings, random)}\r\n\r\n${text}`,
  (text, random) => `${text}${pick(pieces, random)}`.repeat(1 + random(4)),
  // line ends
  (text, random) => text.replaceAll('\r\n', pick(['\n', '\r', '\r\r\n'], random)),
]

/** Replaces a few bytes somewhere. */
function splice(text: string, random: Random, inserted: string): string {
  const at = random(text.length + 1)
  return text.slice(0, at) + inserted + text.slice(at + random(random(4) === 0 ? 200 : 8))
}

function entityOf(text: string): Entity {
  const end = text.search(/\r?\n\r?\n/)
  const head = end < 0 ? text : text.slice(0, end)
  return { fields: head.split(/\r?\n(?![ \t])/), body: end < 0 ? '' : text.slice(end).replace(/^\r?\n\r?\n/, '') }
}

function inFields(change: (fields: string[], random: Random, sources: readonly string[]) => void): Mutation {
  return (text, random, sources) => {
    const { fields, body } = entityOf(text)
    change(fields, random, sources)
    return `${fields.join('\r\n')}\r\n\r\n${body}`
  }
}

/** Sets a field of the message, or of one of its parts. */
function withField(name: string, value: (random: Random) => string): Mutation {
  return (text, random) => {
    const places = [...text.matchAll(new RegExp(`^${name}:.*(?:\r?\n[ \t].*)*`, 'gim'))]
    const field = `${name}: ${value(random)}`
    if (places.length === 0 || random(4) === 0) return `${field}\r\n${text}`
    const { index, 0: found } = pick(places, random)
    return text.slice(0, index) + field + text.slice(index + found.length)
  }
}

/** Changes what stands between the lines of a boundary. */
function inParts(change: (parts: string[], random: Random, sources: readonly string[]) => void): Mutation {
  return (text, random, sources) => {
    const boundaries = [...text.matchAll(/boundary="?([^";\r\n]{1,70})/gi)].map(([, boundary]) => boundary!)
    if (boundaries.length === 0) return splice(text, random, pick(pieces, random))
    const line = `--${pick(boundaries, random)}`
    const [before = '', ...parts] = text.split(line)
    if (parts.length === 0) return splice(text, random, `\r\n${line}\r\n`)
    change(parts, random, sources)
    return [before, ...parts].join(line)
  }
}
