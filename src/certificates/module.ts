import { isIP } from 'node:net'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config.ts'
import type { CronJob } from '../core/cron.ts'
import { conflict } from '../core/fault.ts'
import type { EventType } from '../events/model.ts'
import type { AnyRoute } from '../http/route.ts'
import type { ModuleBasis, Module } from '../module.ts'
import { type Acme, openAcme } from './acme.ts'
import { type AcmeSettings, Certificates, type CertificateSettings } from './certificates.ts'
import { ChallengePort } from './challenge-port.ts'
import { Challenges } from './challenges.ts'
import { inventory } from './inventory.ts'
import { type Certificate, certificateFailed, certificateRenewed } from './model.ts'
import { routes } from './routes.ts'
import { SharedChallenges } from './shared-challenges.ts'
import { sealedFiles } from './shared-files.ts'

interface Deps extends ModuleBasis {
  policyHosts: () => Promise<{ host: string; leads_here: boolean }[]>
}

/** Certificates of SMTP and the API: from files that are replaced from outside, by ACME, or self-signed. */
export class CertificatesModule implements Module {
  readonly name = 'certificates'
  readonly events: EventType[] = [certificateRenewed, certificateFailed]
  readonly routes: AnyRoute[]
  readonly jobs: CronJob[]
  readonly sealed = [sealedFiles]
  readonly current: Certificates
  readonly #deps: Deps
  readonly #challenges: Challenges
  #settings: CertificateSettings
  #acme: Acme | undefined
  #port: ChallengePort | undefined
  #begun = false
  #open: Promise<void> | undefined

  constructor(deps: Deps) {
    const { config, log, metrics, database } = deps
    this.#deps = deps
    this.#settings = settingsOf(config)
    const { several, caches } = database
    this.#challenges = new Challenges(() => this.#settings.acme?.webroot, several ? new SharedChallenges(deps) : undefined)
    if (several) caches.onInvalid('certificates', () => this.#takeOver())
    this.current = new Certificates(
      this.#settings,
      log,
      ({ cert }) => void this.#emit(({ source, file }) => source === 'file' && file === cert),
    )
    this.routes = routes({ list: () => this.list(), renew: (host) => this.#renew(host) })
    this.jobs = [
      { name: 'obtain-certificates', schedule: '*/10 * * * * *', everywhere: true, run: async () => this.#acme?.renewal.begin() },
      { name: 'look-at-certificates', schedule: '31 * * * * *', everywhere: true, run: () => this.current.refresh() },
    ]
    metrics.gauge(
      'pillarbox_certificate_end_seconds',
      'Unix time at which each certificate expires, by source and first host name',
      async (gauge) => {
        gauge.reset()
        for (const { source, names, not_after } of await this.list()) {
          if (not_after !== null) gauge.labels(source, names[0] ?? '').set(Date.parse(not_after) / 1000)
        }
      },
      ['source', 'name'],
    )
  }

  /** The response to an ACME challenge; undefined for an unknown token. */
  readonly challenge = (token: string): ReturnType<Challenges['answer']> => this.#challenges.answer(token)

  async start(): Promise<void> {
    await this.#opened()
    const { listen } = this.#deps.config.acme ?? {}
    if (listen) {
      this.#port = new ChallengePort(this.#challenges, this.#deps.publicUrl)
      await this.#port.start(listen)
    }
    this.#begun = true
  }

  async stop(): Promise<void> {
    this.#begun = false
    await this.#port?.stop()
    await this.#acme?.renewal.stop()
    this.current.stop()
  }

  async reload(config: Config): Promise<void> {
    const next = settingsOf(config)
    if (!isDeepStrictEqual(this.#settings.acme, next.acme) || (next.acme && !this.#acme)) {
      await this.#acme?.renewal.stop()
      // cleared in case the next one does not open: then a further reload opens it
      this.#acme = undefined
      this.#acme = await this.#openAcme(next)
    }
    this.#settings = next
    await this.current.reload(this.#settings, this.#acme?.renewal.pairs ?? new Map())
  }

  /** Opens the certificates, once; also in a box that is open but not started, which contacts no CA. */
  #opened(): Promise<void> {
    this.#open ??= (async () => {
      this.#acme = await this.#openAcme(this.#settings)
      await this.current.start(this.#acme?.renewal.pairs ?? new Map())
    })()
    return this.#open
  }

  /** Uses what another box has obtained. */
  async #takeOver(): Promise<void> {
    const acme = this.#acme
    if (!acme) return
    await acme.acmeStore.refresh()
    await acme.renewal.load()
    await this.current.take(acme.renewal.pairs)
  }

  async #openAcme({ acme, obtained }: CertificateSettings): Promise<Acme | undefined> {
    if (!acme) return undefined
    const { clock, log, database, seal, version, policyHosts } = this.#deps
    return openAcme(acme, obtained, {
      clock,
      log,
      database,
      seal,
      policyHosts,
      agent: `pillarbox/${version}`,
      post: (token, text) => this.#challenges.post(token, text),
      takeOver: () => this.#takeOver(),
      settled: async (name, news) => {
        await this.current.take(this.#acme?.renewal.pairs ?? new Map())
        if (news) await this.#emit(({ source, file }) => source === 'acme' && file === this.#acme?.acmeStore.file(name))
      },
    })
  }

  /** Every certificate that the box uses or should use; also of a box that is open and not started. */
  async list(): Promise<Certificate[]> {
    await this.#opened()
    const obtained = (await this.#acme?.renewal.all()) ?? []
    return inventory(this.current, obtained, (name) => this.#acme?.acmeStore.file(name) ?? name)
  }

  async #renew(host: string | undefined): Promise<void> {
    if (!this.#begun) throw conflict('The box is not running, so no CA can reach it. Start it first.', { code: 'not_running' })
    await this.current.refresh()
    if (!this.#acme && host !== undefined) {
      throw conflict('ACME is not enabled (acme.agree_terms).', { code: 'acme_not_configured' })
    }
    await this.#acme?.renewal.now(host)
  }

  /** Emits one event for each selected certificate. */
  async #emit(meant: (one: Certificate) => boolean): Promise<void> {
    const { database, events, account, log } = this.#deps
    try {
      for (const data of (await this.list()).filter(meant)) {
        const type = data.problem === null ? certificateRenewed : certificateFailed
        await database.transaction((tx) => events.append(tx, type, { account_id: account, identity_id: null, data }))
      }
    } catch (error) {
      log.error({ err: error }, 'event of a certificate could not be written')
    }
  }
}

function settingsOf({ hostname, data_dir, keys_dir, public_url, smtp, http, acme }: Config): CertificateSettings {
  const { tls } = http
  return {
    hostname,
    own: join(data_dir, 'tls'),
    obtained: join(keys_dir, 'acme'),
    mail: smtp.tls ?? null,
    web: tls?.cert !== undefined && tls.key !== undefined ? { cert: tls.cert, key: tls.key } : null,
    api: tls !== undefined,
    acme: acme ? acmeSettings(acme) : null,
  }

  function acmeSettings(input: NonNullable<Config['acme']>): AcmeSettings {
    const served = [...(smtp.tls ? [] : [hostname]), ...(tls && tls.cert === undefined ? [new URL(public_url).hostname] : [])]
    return {
      directory: input.directory,
      email: input.email,
      binding: input.eab_key_id && input.eab_hmac_key ? { kid: input.eab_key_id, hmacKey: input.eab_hmac_key } : undefined,
      ca_file: input.ca_file,
      hosts: input.names.length > 0 ? input.names : [...new Set(served)].filter((host) => host.includes('.') && isIP(host) === 0),
      // also while mail.mta_sts is none: senders that cached a policy must be able to fetch it
      policies: tls !== undefined,
      renew_before: input.renew_before,
      webroot: input.webroot,
    }
  }
}
