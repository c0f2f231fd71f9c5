import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { attachmentsOf, parse } from '../../src/message/parse.ts'
import { pick, type Random, randomFrom } from '../support/random.ts'

const folder = new URL('../fixtures/mail/', import.meta.url)
const messages = readdirSync(folder)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => readFileSync(new URL(name, folder)))
  .filter((raw) => raw.length < 20_000)

const seed = Number(process.env['FUZZ_SEED'] ?? 20261120)
const marker = 'ZqXjMarkerOfAnotherField'

const rounds = Array.from({ length: 10 }, (_, index) => seed + index)

test.each(rounds)('300 broken messages are read without harm (FUZZ_SEED=%i)', async (start) => {
  const random = randomFrom(start)
  const faults: string[] = []
  for (let round = 0; round < 300; round++) {
    for (const fault of await faultsOf(broken(random), round % 10 === 0)) faults.push(`round ${round}: ${fault}`)
  }
  expect(faults).toEqual([])
  expect(Object.keys(Object.prototype)).toEqual([])
  expect('polluted' in {}).toBe(false)
})

async function faultsOf(raw: Buffer, withContent: boolean): Promise<string[]> {
  const parsed = await parse(raw)
  const { subject, text, snippet, body_text, body_html, codes, links, attachments } = parsed
  const last = attachments.at(-1)
  const again = withContent && last !== undefined ? (await attachmentsOf(raw, [last.index]))[0]?.attachment : last
  const checks: [string, boolean][] = [
    ['the text of another field', !JSON.stringify(parsed).includes(marker)],
    ['a snippet of more than a line', snippet.length <= 200 && !/[\r\n]/.test(snippet)],
    ['too many codes or links', codes.length <= 5 && links.length <= 100],
    ['a NUL', !`${subject}${text}${body_text}${body_html}`.includes('\0')],
    ['a name that is a path', attachments.every(({ filename }) => /^[^/\\\p{Cc}]{1,200}$/u.test(filename))],
    ['another attachment the second time', again?.sha256 === last?.sha256],
  ]
  return checks.flatMap(([fault, isFine]) => (isFine ? [] : [fault]))
}

// The first field is never touched, so what it holds can only come out by mistake.
function broken(random: Random): Buffer {
  let raw: Buffer = pick(messages, random)
  for (let times = random(6); times >= 0; times--) raw = mutated(raw, random)
  return Buffer.concat([Buffer.from(`X-Other: ${marker}\r\n`), raw])
}

const pieces = [
  '\r\n',
  '\r\n\r\n',
  '\0',
  '\r',
  '\n',
  '--',
  '=?utf-8?B?',
  '?=',
  '=?utf-8?Q?=00=0A?=',
  '<',
  '>',
  '"',
  '(',
  ';',
  ':',
  ',',
  '=',
  '\xff\xfe',
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
]

function mutated(raw: Buffer, random: Random): Buffer {
  const at = random(raw.length + 1)
  const length = random(random(4) === 0 ? 200 : 8)
  const before = raw.subarray(0, at)
  const after = raw.subarray(Math.min(raw.length, at + length))
  switch (random(6)) {
    case 0:
      return Buffer.concat([before, Buffer.from(Array.from({ length }, () => random(256))), after])
    case 1:
      return Buffer.concat([before, after])
    case 2:
      return Buffer.concat([before, Buffer.from(pick(pieces, random), 'latin1'), raw.subarray(at)])
    case 3:
      return before
    case 4:
      return Buffer.concat([before, raw.subarray(at, at + length), raw.subarray(at)])
    default:
      return Buffer.concat([before, pick(messages, random).subarray(random(400), 600 + random(400)), raw.subarray(at)])
  }
}
