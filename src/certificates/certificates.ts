import { join } from 'node:path'
import { createSecureContext, type SecureContext } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../core/log.ts'
import type { AuthoritySettings } from './authority.ts'
import { covers, type Pair } from './pair.ts'
import { certificate } from './self-signed.ts'

import { type PairFiles, WatchedPair } from './watched-pair.ts'

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

/** A listener that uses a certificate. */
type Use = 'mail' | 'api'

/** The store's name of the box's own ACME certificate. */
export const main = 'main'

/**
 * Selects the certificate of each listener: from the settings, else by ACME, else self-signed. Listeners are notified of changes; open
 * connections keep theirs.
 */
export class Certificates {
  readonly #log: Log
  readonly #followers = new Set<() => void>()
  readonly #files = new Map<Use, WatchedPair>()
  readonly #replaced: (place: PairFiles) => void
  #settings: CertificateSettings
  #obtained: ReadonlyMap<string, Pair> = new Map()
  /** By host; contexts are expensive, and clients choose the host. */
  #contexts = new Map<string, SecureContext>()
  #own: Pair | undefined

  /** `replaced` is called when files were replaced. */
  constructor(settings: CertificateSettings, log: Log, replaced: (place: PairFiles) => void) {
    this.#settings = settings
    this.#log = log
    this.#replaced = replaced
  }

  /** Opens the files, and creates a self-signed certificate where nothing else is there. Throws a sentence when a file cannot be used. */
  async start(obtained: ReadonlyMap<string, Pair>): Promise<void> {
    await this.#open('mail', this.#settings.mail)
    await this.#open('api', this.#settings.web)
    await this.take(obtained)
  }

  stop(): void {
    for (const file of this.#files.values()) file.close()
    this.#files.clear()
  }

  /** The certificate of SMTP. */
  get mail(): Pair {
    return this.#selected('mail')
  }

  /** The default certificate of the API. */
  get api(): Pair {
    return this.#selected('api')
  }

  /** The certificate of the API for this SNI host, if it is not the default. */
  readonly named = (host: string): SecureContext | undefined => {
    const context = this.#contexts.get(host.toLowerCase())
    return context && covers(this.api.cert, host) ? undefined : context
  }

  follow(renewed: () => void): void {
    this.#followers.add(renewed)
  }

  /** Checks for replaced files, where no watcher event came. */
  async refresh(): Promise<void> {
    for (const file of new Set(this.#files.values())) await file.refresh()
  }

  /** Applies changed files immediately. */
  async reload(settings: CertificateSettings, obtained: ReadonlyMap<string, Pair>): Promise<void> {
    this.#settings = settings
    await this.#open('mail', settings.mail)
    await this.#open('api', settings.web)
    await this.take(obtained)
  }

  /** Applies the certificates obtained by ACME, by name. */
  async take(obtained: ReadonlyMap<string, Pair>): Promise<void> {
    this.#obtained = new Map(obtained)
    const hosts = [...obtained].filter(([name]) => name !== main)
    this.#contexts = new Map(hosts.map(([host, pair]) => [host, createSecureContext({ ...pair, minVersion: 'TLSv1.2' })]))
    const { own, hostname } = this.#settings
    if (this.uses('self_signed').length > 0) this.#own = await certificate(own, hostname)
    this.#notify()
  }

  /** The listeners that use a certificate of this source. */
  uses(source: 'acme' | 'self_signed'): Use[] {
    const without = (['mail', 'api'] as const).filter((use) => !this.#files.has(use) && (use === 'mail' || this.#settings.api))
    return this.#obtained.has(main) === (source === 'acme') ? without : []
  }

  /** The pairs from files, and their listeners. */
  get files(): { uses: Use[]; file: WatchedPair }[] {
    return [...new Set(this.#files.values())].map((file) => ({
      uses: [...this.#files].filter(([, one]) => one === file).map(([use]) => use),
      file,
    }))
  }

  /** The self-signed certificate, if it is used. */
  get own(): { file: string; pair: Pair } | null {
    const shown = this.uses('self_signed').length > 0 && this.#own
    return shown ? { file: join(this.#settings.own, 'cert.pem'), pair: shown } : null
  }

  #selected(use: Use): Pair {
    const pair = this.#files.get(use)?.pair ?? this.#obtained.get(main) ?? this.#own
    if (!pair) throw new Error('no certificate is available before the start')
    return pair
  }

  async #open(use: Use, place: PairFiles | null): Promise<void> {
    const former = this.#files.get(use)
    // both listeners may use the same file, which is then watched once
    const same = [...this.#files.values()].find((one) => place !== null && isDeepStrictEqual(one.place, place))
    const file = same ?? (place && (await WatchedPair.open(place, this.#log, () => this.#onFilesChanged(place))))
    if (file) this.#files.set(use, file)
    else this.#files.delete(use)
    if (former && ![...this.#files.values()].includes(former)) former.close()
    await file?.refresh()
  }

  #onFilesChanged(place: PairFiles): void {
    this.#notify()
    this.#replaced(place)
  }

  #notify(): void {
    for (const renewed of this.#followers) renewed()
  }
}
