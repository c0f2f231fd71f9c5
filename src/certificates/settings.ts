import type { AuthoritySettings } from './authority.ts'
import type { PairFiles } from './watched-pair.ts'

/** The settings of certificates. */
export interface CertificateSettings {
  hostname: string
  /** The directory of the self-signed certificate. */
  own: string
  /** The directory of ACME certificates. */
  obtained: string
  /** The files of SMTP, if configured. */
  mail: PairFiles | null
  /** The files of the API, if configured; `api` is false when it has no TLS. */
  web: PairFiles | null
  api: boolean
  acme: AcmeSettings | null
}

export interface AcmeSettings extends Omit<AuthoritySettings, 'agent' | 'ca'> {
  /** PEM; undefined: the default roots. */
  ca_file: string | undefined
  /** The hosts of the box's own certificate. */
  hosts: string[]
  /** True if `mta-sts.` of hosted domains get certificates too. */
  policies: boolean
  /** Milliseconds. */
  renew_before: number
  webroot: string | undefined
}
