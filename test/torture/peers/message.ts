import { pick, type Random } from '../../support/random.ts'

/** Lines that programs change which do not take care. */
const lines = [
  'a line',
  '',
  '',
  '.',
  '..',
  '...',
  '. dot',
  '.end',
  ' ',
  'blanks at the end   ',
  '\ttab\t',
  'From the beginning',
  '>From quoted',
  'Subject: in the body',
  '--boundary',
  '=3D =',
  'Gr\xc3\xbc\xc3\x9fe',
  '\xff\xfe\x80\xa0',
  '\x01\x02\x07\x1b\x7f',
  '\x0b\x0c',
  'x'.repeat(998),
  `.${'x'.repeat(997)}`,
  '.'.repeat(998),
  '-----BEGIN PGP MESSAGE-----',
]

const fields = [
  'X-Long: ' + 'x'.repeat(900),
  'X-Folded: one\r\n\ttwo\r\n  three',
  'X-Empty:',
  'Reply-To: "a, b" <c@client.test>',
  'Subject: Gr\xc3\xbc\xc3\x9fe',
  'X-Blanks: end   ',
  'MIME-Version: 1.0',
  'Content-Type: application/octet-stream',
  'Content-Transfer-Encoding: 8bit',
]

/** A message with lines of all kinds, once in a while of 10 MB. `id` tells it from any other. */
export function messageOf(id: string, random: Random): string {
  const head = [
    'From: a@client.test',
    'To: b@box.test',
    `Message-ID: <${id}@client.test>`,
    'Date: Thu, 19 Nov 2026 10:00:00 +0000',
  ]
  for (const field of fields) if (random(5) === 0) head.push(field)
  const kind = random(60)
  const body =
    kind === 0 ? large(random) : kind < 6 ? attachment(random) : Array.from({ length: random(30) }, () => pick(lines, random))
  const text = [...head, '', ...body, ''].join('\r\n')
  // swaks takes a last line of one dot for the end that it would send itself
  return /\r\n\.[\r\n]*$/.test(text) ? `${text}end\r\n` : text
}

function large(random: Random): string[] {
  const line = pick(lines, random)
  return Array.from({ length: Math.ceil((10 * 1024 * 1024) / (line.length + 2) / (line.length < 10 ? 8 : 1)) }, () => line)
}

function attachment(random: Random): string[] {
  const bytes = Buffer.from(Array.from({ length: 3000 + random(30_000) }, () => random(256)))
  const content = bytes.toString('base64').match(/.{1,76}/g) ?? []
  return [
    '--x',
    'Content-Type: application/pdf; name=x.pdf',
    'Content-Transfer-Encoding: base64',
    '',
    ...content,
    '--x--',
    ...(random(2) === 0 ? ['', ''] : []),
  ]
}
