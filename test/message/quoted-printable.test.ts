import fc from 'fast-check'
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { parse } from '../../src/message/parse.ts'
import { decodeQuotedPrintable } from '../../src/message/mime/quoted-printable.ts'

// as mailparser has it
const library = createRequire(createRequire(import.meta.url).resolve('mailparser'))('libqp') as {
  decode(octets: Buffer): Buffer
}

test.each([
  ['caf=C3=A9', 'café'],
  ['soft =\r\nbreak', 'soft break'],
  ['soft = \t\r\nbreak with blanks', 'soft break with blanks'],
  ['blanks at the end  \t\r\nof a line \t', 'blanks at the end\r\nof a line'],
  ['=3D=3d', '=='],
  ['= 41 =4 =4g =', '= 41 =4 =4g '],
  ['', ''],
])('%j is %j', (encoded, text) => {
  expect(decodeQuotedPrintable(Buffer.from(encoded)).toString()).toBe(text)
})

test('anything is decoded as the library decodes it', () => {
  const octets = fc.array(fc.constantFrom('=', '\r', '\n', ' ', '\t', '4', 'a', 'F', 'g', '=41', '=\r\n', '\u00e9'), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(octets, (pieces) => {
      const encoded = Buffer.from(pieces.join(''), 'latin1')
      expect(decodeQuotedPrintable(Buffer.from(encoded)).toString('latin1')).toBe(library.decode(encoded).toString('latin1'))
    }),
    { numRuns: 3000 },
  )
})

// the library takes minutes for it, and a worker has ten seconds
test('a message of blanks is read in one pass', async () => {
  const lines = `a${' '.repeat(60_000)}b\r\n`.repeat(20)
  const raw = Buffer.from(`From: eve@evil.test\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n${lines}`)
  const { body_text, parse_error } = await parse(raw)
  expect(parse_error).toBeNull()
  expect(body_text).toHaveLength(20 * 60_003)
})
