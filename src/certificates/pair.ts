import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { chmod, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { attempt } from '../core/fault.ts'

/** A certificate with its chain, and its private key; PEM texts. */
export interface Pair {
  cert: string
  key: string
}

/** The fields of a certificate; times in milliseconds. */
interface CertificateDetails {
  /** The host names it is valid for, in lower case. */
  names: string[]
  issuer: string
  not_before: number
  not_after: number
  /** SHA-256 over the certificate, in hexadecimal. */
  fingerprint: string
}

/** Why a server cannot use this pair, in words; null when it can. Detects half-written files. */
export function flaw({ cert, key }: Pair): string | null {
  const whole = cert.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (whole.length === 0) return 'there is no certificate in PEM form'
  if (whole.length !== cert.split('-----BEGIN').length - 1) return 'a certificate is incomplete'
  if (!whole.every((text) => attempt(() => new X509Certificate(text)))) return 'a certificate is damaged'
  const secret = attempt(() => createPrivateKey(key))
  if (!secret) return 'the private key is incomplete, damaged or protected by a passphrase'
  if (!new X509Certificate(cert).checkPrivateKey(secret)) return 'the private key does not belong to the certificate'
  return attempt(() => createSecureContext({ cert, key })) ? null : 'TLS does not accept the certificate: its key is too weak'
}

/** Parses a valid certificate; of a chain the first. */
export function readingOf(cert: string): CertificateDetails {
  const parsed = new X509Certificate(cert)
  const subject = (parsed.subjectAltName ?? '').split(', ')
  return {
    names: subject.filter((entry) => entry.startsWith('DNS:')).map((entry) => entry.slice('DNS:'.length).toLowerCase()),
    issuer: issuerOf(parsed.issuer),
    not_before: parsed.validFromDate.getTime(),
    not_after: parsed.validToDate.getTime(),
    fingerprint: parsed.fingerprint256.replaceAll(':', '').toLowerCase(),
  }
}

/** True if a certificate is valid for this host name. */
export function covers(cert: string, host: string): boolean {
  return new X509Certificate(cert).checkHost(host) !== undefined
}

/** The organization, else the common name; a distinguished name has one attribute a line. */
function issuerOf(distinguished: string): string {
  const attributes = distinguished.split('\n').map((line): [string, string] => {
    const at = line.indexOf('=')
    return [line.slice(0, at), line.slice(at + 1)]
  })
  const said = new Map(attributes)
  return said.get('O') ?? said.get('CN') ?? distinguished.replaceAll('\n', ', ')
}

/** Replaces a file atomically: readers get the old or the new content, also after a power failure. */
export async function write(path: string, text: string, mode: number): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`)
  try {
    await using file = await open(temporary, 'wx', mode)
    await file.writeFile(text)
    await file.sync()
    // set explicitly, as the umask reduces the mode of the open
    await chmod(temporary, mode)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await using entry = await open(dirname(path), 'r')
  await entry.sync()
}
