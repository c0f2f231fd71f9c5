import { expect, test } from 'vitest'
import { unsignedAmbiguity } from '../../src/mailauth/body-reading.ts'
import { headersOf } from '../../src/message/headers.ts'
import { parse } from '../../src/message/parse.ts'
import { randomFrom } from '../support/random.ts'

const lines = [
  'Your code is 493817',
  'Your code: 493 ',
  '817',
  '> quoted ',
  '> x',
  ' > y',
  'On Mon, Ada wrote:',
  '-- ',
  '--',
  '-----',
  '---',
  'a=',
  '=E2=82=AC',
  '=3D',
  'x =20',
  'caf\u00e9',
  'Gr\u00c3\u00bc',
  '&amp;',
  'SGVsbG8gNDkzODE3',
  'test',
  '',
  '\t',
  '<html>',
  '<p class=3D"x">',
  '<p class="x">',
  '--b',
  '--b--',
  'Content-Type: text/html',
]
const parts = [
  'Content-Type: text/plain\r\n\r\nHello Ada, your code is 111111',
  'Content-Type: text/html\r\n\r\n<p class="x">Hello Ada, your code is 111111</p>',
  'Content-Type: text/html\r\n\r\n<p>It is fraud.</p>',
  '\r\nTo unsubscribe',
  'Content-Type: application/pdf; name=x.pdf\r\n\r\nx',
  'Content-Type: text/plain\r\nContent-Disposition: inline; filename=a.txt\r\n\r\nx',
  'Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; x\r\n\r\nFinal-Recipient: rfc822; a@b.test\r\nAction: failed',
]
const texts = [
  'plain',
  'plain; charset=utf-8',
  'plain; charset=iso-8859-5',
  'plain; format=flowed',
  'html',
  'html; format=flowed',
]
const multiparts = ['mixed', 'alternative', 'related', 'report', 'signed'].flatMap((type) => [
  `${type}; boundary=b`,
  `${type}; boundary="---"`,
])
const types = [...texts.map((type) => `text/${type}`), ...multiparts.map((type) => `multipart/${type}`)]
const encodings = ['7bit', 'base64', 'quoted-printable']
const roll = randomFrom(7)
const pick = <T>(list: readonly T[]): T => list[roll(list.length)]!
const several = <T>(most: number, one: () => T): T[] => Array.from({ length: 1 + roll(most) }, one)

function multipart(boundary: string): string {
  const children = several(3, () =>
    boundary === 'b' && roll(3) === 0
      ? `Content-Type: multipart/${pick(['alternative', 'related'])}; boundary=c\r\n\r\n${multipart('c')}`
      : pick(parts),
  )
  return `${children.map((part) => `--${boundary}\r\n${part}\r\n`).join('')}--${boundary}--`
}

/** What is shown, but for blanks at the ends of lines. */
async function shown(raw: Buffer): Promise<string> {
  const { text, codes, body_html, attachments } = await parse(raw)
  return JSON.stringify([text.replace(/^ +|[ \t]+$/gm, ''), codes, body_html, attachments.map(({ sha256 }) => sha256)])
}

test('whatever a body is, all values that count show the same', async () => {
  let counted = 0
  for (let round = 0; round < 300; round++) {
    const body = round % 2 === 0 ? multipart('b') : several(4, () => pick(lines)).join('\r\n')
    const readings = new Map<string, string>()
    for (const type of types)
      for (const encoding of encodings) {
        const fields = `Content-Type: ${type}\r\nContent-Transfer-Encoding: ${encoding}`
        const raw = Buffer.from(`From: a@b.test\r\n${fields}\r\n\r\n${body}\r\n`, 'latin1')
        if (unsignedAmbiguity(raw, headersOf(raw), () => false) === null) readings.set(await shown(raw), fields)
      }
    expect({ body, others: [...readings].slice(1) }).toEqual({ body, others: [] })
    counted += readings.size
  }
  expect(counted).toBeGreaterThan(100)
})
