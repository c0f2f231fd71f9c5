import { generateKeyPairSync } from 'node:crypto'
import { sealMessage } from 'mailauth'
import { dkimSign } from 'mailauth/lib/dkim/sign.js'
import type { Envelope } from '../../src/mail/model.ts'

/** A key a domain signs with: the PEM, and the TXT record that publishes it. */
export interface SigningKey {
  pem: string
  record: string
}

export function rsaKey(bits = 2048): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  return {
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    record: `v=DKIM1; k=rsa; p=${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`,
  }
}

export function ed25519Key(): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return {
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    record: `v=DKIM1; k=ed25519; p=${publicKey.export({ type: 'spki', format: 'der' }).subarray(12).toString('base64')}`,
  }
}

/** A plain message; `from` is the whole value of its From field. */
export function plainMail(from: string, body = 'hello\r\n'): string {
  return `From: ${from}\r\nTo: u@mx.test\r\nSubject: pay\r\nDate: Thu, 19 Nov 2026 10:00:00 +0000\r\nMessage-ID: <1@evil.test>\r\n\r\n${body}`
}

/** The message with a DKIM-Signature of this domain on top; `headerList` is its h=, `from:to:subject`. */
export async function sign(
  message: string | Buffer,
  domain: string,
  selector: string,
  key: SigningKey,
  options: { maxBodyLength?: number; signTime?: Date; expires?: Date; headerList?: string; canonicalization?: string } = {},
): Promise<Buffer> {
  const signature = { signingDomain: domain, selector, privateKey: key.pem, ...options }
  const { signatures, errors } = await dkimSign(message, {
    canonicalization: 'relaxed/relaxed',
    ...signature,
    signatureData: [signature],
  })
  if (errors.length > 0) throw new Error('the test message could not be signed')
  return Buffer.concat([Buffer.from(signatures), Buffer.from(message)])
}

/** The message with an ARC set of this domain on top. */
export async function seal(
  message: Buffer,
  domain: string,
  selector: string,
  key: SigningKey,
  authResults: string,
  cv = 'none',
  headerList?: string,
): Promise<Buffer> {
  const list = headerList === undefined ? {} : { headerList }
  const set = await sealMessage(message, { signingDomain: domain, selector, privateKey: key.pem, authResults, cv, ...list })
  return Buffer.concat([Buffer.from(set), message])
}

export function envelope(change: Partial<Envelope> = {}): Envelope {
  return {
    remote_address: '192.0.2.1',
    helo: 'mail.evil.test',
    mail_from: 'eve@evil.test',
    recipients: ['u@mx.test'],
    smtputf8: false,
    tls: null,
    session: 'test',
    ...change,
  }
}
