import type { Tlsa, TlsFacts } from '../../net/tls-worker.ts'

/** The failures of a TLS session, by the result types of RFC 8460 4.3. */
type TlsFailureType =
  | 'starttls-not-supported'
  | 'certificate-host-mismatch'
  | 'certificate-expired'
  | 'certificate-not-trusted'
  | 'validation-failure'
  | 'sts-policy-fetch-error'
  | 'sts-policy-invalid'
  | 'sts-webpki-invalid'

export interface TlsFailure {
  type: TlsFailureType
  /** In words or as a code; null if the type suffices. */
  reason: string | null
}

/** The policy that a session was held to (RFC 8460 4.4). */
export interface TlsPolicy {
  type: 'tlsa' | 'sts' | 'no-policy-found'
  /** For `tlsa` the TLSA base domain, else the recipients' domain. */
  domain: string
  strings: string[]
  mx_hosts: string[]
}

/** How one session with a server of a recipient domain went. */
export interface TlsResult {
  /** The recipients' domain, lower-case A-labels. */
  domain: string
  policy: TlsPolicy
  failure: TlsFailure | null
  sending_ip: string | null
  receiving_ip: string | null
  receiving_mx: string | null
}

export type TlsListener = (result: TlsResult) => void

export function noPolicy(domain: string): TlsPolicy {
  return { type: 'no-policy-found', domain, strings: [], mx_hosts: [] }
}

/** An MTA-STS policy as RFC 8460 4.4 shows it: its lines, and its patterns once more. */
export function stsPolicy(domain: string, { mode, mx, max_age }: MtaStsPolicy): TlsPolicy {
  const strings = ['version: STSv1', `mode: ${mode}`, ...mx.map((one) => `mx: ${one}`), `max_age: ${max_age}`]
  return { type: 'sts', domain, strings, mx_hosts: mx }
}

export function tlsaPolicy(hostname: string, records: readonly Tlsa[]): TlsPolicy {
  const strings = records.map(
    ({ usage, selector, mtype, cert }) => `${usage} ${selector} ${mtype} ${Buffer.from(cert).toString('hex')}`,
  )
  return { type: 'tlsa', domain: hostname, strings, mx_hosts: [hostname] }
}

/** The reason for which verification of the certificate would have failed; null if it is valid. */
export function flawOf(facts: TlsFacts | undefined): TlsFailure | null {
  if (!facts) return { type: 'starttls-not-supported', reason: null }
  return facts.authorized ? null : certificateFailure(facts.flaw)
}

/** The result type of a handshake error or its OpenSSL code; nodemailer replaces the code of the system with its own. */
export function certificateFailure(error: unknown): TlsFailure {
  const { code: outer = '', originalCode } = (error ?? {}) as { code?: string; originalCode?: string }
  const code = typeof error === 'string' ? error : (originalCode ?? outer)
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return { type: 'certificate-host-mismatch', reason: code }
  if (code === 'CERT_HAS_EXPIRED') return { type: 'certificate-expired', reason: code }
  if (/CERT|SIGNED|ISSUER|SIGNATURE|LEAF|CRL/.test(code) && !code.startsWith('ERR_SSL')) {
    return { type: 'certificate-not-trusted', reason: code }
  }
  return { type: 'validation-failure', reason: code || null }
}

/** The MTA-STS policy of a domain (RFC 8461 3.2). */
export interface MtaStsPolicy {
  mode: 'enforce' | 'testing' | 'none'
  mx: string[]
  /** Seconds. */
  max_age: number
}
