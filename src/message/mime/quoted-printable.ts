import { Transform } from 'node:stream'

/**
 * A stream that decodes quoted-printable (RFC 2045 6.7) like libqp, which takes quadratic time for a run of blanks. Outputs everything at the
 * end.
 */
export function quotedPrintableDecoder(): Transform {
  const chunks: Buffer[] = []
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      chunks.push(chunk)
      done()
    },
    flush(done) {
      done(null, decodeQuotedPrintable(Buffer.concat(chunks)))
    },
  })
}

/** Decodes in place, in three passes, as each can create input for the next. An `=` that begins no escape is kept. */
export function decodeQuotedPrintable(octets: Buffer): Buffer {
  return withoutEscapes(withoutSoftBreaks(withoutBlanksAtEnds(octets)))
}

const [tab, lf, cr, space, equals] = [0x09, 0x0a, 0x0d, 0x20, 0x3d]

function withoutBlanksAtEnds(octets: Buffer): Buffer {
  let length = 0
  /** The end of the line without trailing blanks. */
  let text = 0
  for (const octet of octets) {
    if (octet === lf || octet === cr) length = text
    octets[length++] = octet
    if (octet !== space && octet !== tab) text = length
  }
  return octets.subarray(0, text)
}

function withoutSoftBreaks(octets: Buffer): Buffer {
  let length = 0
  for (let at = 0; at < octets.length; at += 1) {
    if (octets[at] === equals) {
      const next = octets[at + 1] === cr ? at + 2 : at + 1
      if (octets[next] === lf) {
        at = next
        continue
      }
      if (at + 1 === octets.length) break
    }
    octets[length++] = octets[at]!
  }
  return octets.subarray(0, length)
}

function withoutEscapes(octets: Buffer): Buffer {
  let length = 0
  for (let at = 0; at < octets.length; at += 1) {
    const value = octets[at] === equals ? 16 * digit(octets[at + 1]) + digit(octets[at + 2]) : Number.NaN
    octets[length++] = Number.isNaN(value) ? octets[at]! : value
    if (!Number.isNaN(value)) at += 2
  }
  return octets.subarray(0, length)
}

/** The value of a hexadecimal digit; NaN for any other byte. */
function digit(octet = 0): number {
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30
  const letter = octet | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN
}
