import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import { rsaKey, sign } from '../test/support/signed-mail.ts'
import type { Zone } from './dns-server.ts'

/** The domain whose mail is sent: SPF passes for loopback, DMARC says reject. */
export const senderDomain = 'sender.test'

const key = rsaKey(2048)

/** What the DNS says of the sender: the records that SPF, DKIM and DMARC read. */
export const senderZone: Zone = {
  txt: {
    [senderDomain]: 'v=spf1 ip4:127.0.0.1 -all',
    [`mail.${senderDomain}`]: 'v=spf1 ip4:127.0.0.1 -all',
    [`bench._domainkey.${senderDomain}`]: key.record,
    [`_dmarc.${senderDomain}`]: 'v=DMARC1; p=reject',
  },
  a: { [`mail.${senderDomain}`]: '127.0.0.1' },
}

/** A message for the generator: in its file lines end with LF, it adds the CR itself. */
export interface Prepared {
  file: string
  /** Octets on the wire, without the final dot. */
  size: number
  raw: Buffer
}

/** A sign-up mail of about 4 KB with HTML and a code, signed with RSA-2048. */
export async function realMail(directory: string): Promise<Prepared> {
  const html = readFileSync(new URL('../test/fixtures/mail/signup-slack.eml', import.meta.url), 'latin1').replaceAll(
    /\r?\n/g,
    '\r\n',
  )
  // a row more brings the fixture to the size of the goal
  const row =
    '<tr><td style=3D"padding:8px 24px;font:400 12px/18px Helvetica,Arial,sans-serif">=\r\nThis code works once, for ten minutes. Never tell it to anybody.</td></tr>\r\n'
  const body = html
    .slice(html.indexOf('\r\n\r\n') + 4)
    .replace('</table></td></tr></table>', `${row.repeat(5)}</table></td></tr></table>`)
  const head = header({ 'Content-Type': 'text/html; charset="utf-8"', 'Content-Transfer-Encoding': 'quoted-printable' })
  return prepare(directory, 'real.eml', `${head}\r\n${body}`)
}

/** A message of 177 KB, or another size: two short bodies and one attachment of 128 KiB, or so many octets; signed. */
export async function attachmentMail(directory: string, octets = 131_072): Promise<Prepared> {
  const parts = [
    part({ 'Content-Type': 'text/plain; charset=utf-8' }, 'The invoice for November is attached.'),
    part({ 'Content-Type': 'text/html; charset=utf-8' }, '<p>The invoice for <b>November</b> is attached.</p>'),
    part(
      {
        'Content-Type': 'application/pdf; name="invoice.pdf"',
        'Content-Disposition': 'attachment; filename="invoice.pdf"',
        'Content-Transfer-Encoding': 'base64',
      },
      wrapped(randomBytes(octets).toString('base64')),
    ),
  ]
  return prepare(
    directory,
    'attachment.eml',
    `${header({ 'Content-Type': 'multipart/mixed; boundary=bench' })}\r\n${parts.join('')}--bench--\r\n`,
  )
}

function header(fields: Record<string, string>): string {
  const all = {
    From: `Slick <feedback@${senderDomain}>`,
    To: 'Robin <robin@pillarbox.test>',
    Subject: 'Slick confirmation code: QWX-8N2',
    Date: 'Fri, 20 Nov 2026 10:03:00 +0000',
    'Message-ID': `<3.20261120@${senderDomain}>`,
    'MIME-Version': '1.0',
    ...fields,
  }
  return written(all)
}

function part(fields: Record<string, string>, body: string): string {
  return `--bench\r\n${written(fields)}\r\n${body}\r\n`
}

function wrapped(text: string): string {
  return (text.match(/.{1,76}/g) ?? []).join('\r\n')
}

function written(fields: Record<string, string>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
}

async function prepare(directory: string, name: string, message: string): Promise<Prepared> {
  const raw = await sign(message, senderDomain, 'bench', key)
  const file = join(directory, name)
  writeFileSync(file, raw.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')
  return { file, size: raw.length, raw }
}
