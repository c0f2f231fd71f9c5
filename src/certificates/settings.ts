import type { AuthoritySettings } from './authority.ts'
import type { PairFiles } from './watched-pair.ts'

/** What of the settings certificates go by. */
export interface CertificateSettings {
  hostname: string
  /** Where the box keeps the one it makes itself. */
  own: string
  /** Where what ACME obtained is kept. */
  obtained: string
  /** The files that SMTP shows, if the settings name some. */
  mail: PairFiles | null
  /** The same of the API; `api` is false when it has no TLS. */
  web: PairFiles | null
  api: boolean
  acme: AcmeSettings | null
}

export interface AcmeSettings extends Omit<AuthoritySettings, 'agent' | 'ca'> {
  /** PEM; undefined: the usual roots. */
  ca_file: string | undefined
  /** Of the one certificate for the box itself. */
  hosts: string[]
  /** Whether `mta-sts.` of our domains get certificates too. */
  policies: boolean
  /** Milliseconds. */
  renew_before: number
  webroot: string | undefined
}
