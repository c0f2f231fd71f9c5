import type { Plan } from '../accounts/plan.ts'
import type { Config } from '../config.ts'
import type { CronJob } from '../core/cron.ts'
import type { EventType } from '../events/model.ts'
import type { AnyRoute } from '../http/route.ts'
import type { ModuleBasis, Module } from '../module.ts'
import { sql } from '../store/database.ts'
import { NextCheck } from './next-check.ts'
import { Domains } from './domains.ts'
import { DkimKeys, type RsaPair, sealedKeys } from './keys.ts'
import { domainFailed, domainVerified } from './model.ts'
import { mailDomainOf } from './zone.ts'
import { DomainReports } from './reports.ts'
import { routes } from './routes.ts'
import type { DomainSettings } from './records.ts'
import type { SendingSettings } from './sending.ts'
import { type DomainStatusReport, statusOf } from './status.ts'
import { Verification } from './verification.ts'

interface Deps extends ModuleBasis {
  plan: Plan
  testing?: { rsaPair?: RsaPair | undefined } | undefined
}

/** Hosted domains: their expected DNS records, the checks of these, and their DKIM keys. */
export class DomainsModule implements Module {
  readonly name = 'domains'
  readonly events: EventType[] = [domainVerified, domainFailed]
  readonly routes: AnyRoute[]
  readonly jobs: CronJob[]
  readonly sealed = [sealedKeys]
  readonly domains: Domains
  readonly reports: DomainReports
  /** The status of every domain; `fresh` checks them first. */
  readonly domainStatus: (fresh: boolean) => Promise<DomainStatusReport[]>
  #settings: DomainSettings
  #outbound: SendingSettings

  constructor(deps: Deps) {
    const { config, database, metrics } = deps
    this.#settings = settingsOf(config)
    this.#outbound = config.outbound
    const settings = (): DomainSettings => this.#settings
    const nextCheck = new NextCheck()
    const keys = new DkimKeys({ ...deps, nextCheck, rsaPair: deps.testing?.rsaPair })
    this.domains = new Domains({
      ...deps,
      keys,
      nextCheck,
      settings,
      outbound: () => this.#outbound,
      domain: config.mail.domain,
    })
    const checked = metrics.counter(
      'pillarbox_domain_checks_total',
      'DNS checks of domains by result: right, wrong, unknown (no answer), late (superseded by a newer check)',
      ['outcome'],
    )
    const verification = new Verification({
      ...deps,
      keys,
      nextCheck,
      settings,
      domains: this.domains,
      checked,
    })
    this.domainStatus = async (fresh) => {
      if (fresh) await verification.recheckAll()
      return statusOf(database, keys, this.#settings)
    }
    this.reports = new DomainReports({ ...deps, domains: this.domains })
    this.routes = routes({ domains: this.domains, verification, reports: this.reports })
    this.jobs = [
      { name: 'check-domains', schedule: '*/10 * * * * *', run: () => verification.checkDue() },
      { name: 'forget-dkim-keys', schedule: '23 * * * *', run: () => keys.forgetRetired() },
      { name: 'forget-reports', schedule: '43 4 * * *', run: (signal) => this.reports.forget(signal) },
    ]
    metrics.gauge(
      'pillarbox_domains',
      'Domains by their status',
      async (gauge) => {
        const rows = await database.all<{ status: string; count: number }>(
          sql`SELECT status, count(*) AS count FROM domains GROUP BY status`,
        )
        for (const status of ['pending', 'verified']) {
          gauge.labels(status).set(rows.find((row) => row.status === status)?.count ?? 0)
        }
      },
      ['status'],
    )
  }

  start(): Promise<void> {
    return this.domains.start()
  }

  attend(): Promise<void> {
    return this.domains.load()
  }

  reload(config: Config): void {
    this.#settings = settingsOf(config)
    this.#outbound = config.outbound
  }
}

function settingsOf({ hostname, public_url, mail, outbound, dns }: Config): DomainSettings {
  return {
    hostname,
    policy_host: mailDomainOf(new URL(public_url).hostname) ?? hostname,
    mta_sts: mail.mta_sts,
    direct: outbound.mode === 'direct',
    ipv6: outbound.ipv6,
    dns,
  }
}
