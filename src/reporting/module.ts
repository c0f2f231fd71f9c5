import { randomInt } from 'node:crypto'
import type { Config } from '../config.ts'
import type { CronJob } from '../core/cron.ts'
import type { Courier } from '../queue/courier.ts'
import { Outside, type OutsideDial, type OutsideSettings } from '../net/outside.ts'
import type { Queue } from '../queue/queue.ts'
import { resolver } from '../net/resolve.ts'
import type { Domains } from '../domains/domains.ts'
import { inquire } from '../mailauth/inquire.ts'
import type { Envelope, Verdict } from '../mail/model.ts'
import type { ModuleBasis, Module } from '../module.ts'
import type { OutboundModule } from '../outbound/module.ts'
import type { TlsResult } from '../outbound/transport/tls-result.ts'
import { ReportCourier } from './courier.ts'
import { ReportCounts } from './counts.ts'
import { dmarcResult } from './dmarc-result.ts'
import { ReportSender, type ReportSettings } from './reports.ts'

interface Deps extends ModuleBasis {
  queue: Queue
  sending: OutboundModule
  domains: Pick<Domains, 'receives' | 'isVerified'>
  outsideDial?: OutsideDial | undefined
}

/** The most lines of a policy in a TLS report, and the longest line in characters. */
const maxLines = 20
const longestLine = 300

/** Names that fit into a header field and a file name; other domains get no reports. */
const plainDomain = /^(?=.{1,253}$)[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/

/** Reports to other domains that request them: on mail in their name, and on TLS with their servers. */
export class ReportingModule implements Module {
  readonly name = 'reporting'
  readonly couriers: Courier[]
  readonly jobs: CronJob[]
  readonly #deps: Deps
  readonly #counts: ReportCounts
  readonly #outside: Outside
  #settings: ReportSettings
  #config: Config

  constructor(deps: Deps) {
    const { config, metrics, sending, domains } = deps
    this.#deps = deps
    this.#config = config
    this.#settings = reportSettings(config)
    const counted = metrics.counter(
      'pillarbox_report_results_total',
      'Messages (dmarc) and TLS sessions (tls) for reports to other domains: counted, dropped (too many different ones)',
      ['kind', 'result'],
    )
    for (const kind of ['dmarc', 'tls']) for (const result of ['counted', 'dropped']) counted.labels(kind, result).inc(0)
    this.#counts = new ReportCounts({ ...deps, tally: (kind, what, count) => counted.labels(kind, what).inc(count) })
    this.#outside = new Outside(outsideSettings(config), deps.outsideDial)
    const reports = new ReportSender({
      ...deps,
      settings: () => this.#settings,
      obstacle: () => this.status()?.why,
      inquire: () => inquire(this.#config),
      isOurs: (domain) => domains.receives(domain),
      sign: (domain, raw) => sending.signer.sign(domain, raw),
    })
    this.couriers = [
      new ReportCourier({
        ...deps,
        outside: this.#outside,
        transmit: (mail, signal) => sending.transport.sendSystemMail(mail, signal),
      }),
    ]
    // jitter, so that not all boxes report in the same second
    const second = randomInt(60)
    this.jobs = [
      { name: 'write-report-results', schedule: '* * * * *', everywhere: true, run: () => this.#counts.write() },
      { name: 'send-reports', schedule: `${second} */5 * * * *`, run: (signal) => reports.send(signal) },
      { name: 'clear-reports', schedule: '51 * * * *', run: (signal) => reports.clear(signal) },
    ]
  }

  /** Why reports cannot be sent, and the fix; null when they can, undefined when they are off. */
  status(): { why: string; fix: string } | null | undefined {
    const { dmarc, tls, domain } = this.#settings
    if (!dmarc && !tls) return undefined
    const { mode, relays } = this.#config.outbound
    if (mode === 'none' && relays.length === 0) {
      const fix = 'Set outbound.mode to direct, or reports.dmarc and reports.tls to false.'
      return { why: 'Outgoing mail is disabled (outbound.mode is none).', fix }
    }
    if (this.#deps.domains.isVerified(domain)) return null
    return {
      why: `They come from ${domain}, which is not verified.`,
      fix: `Publish the records shown by: pillarbox domain check ${domain}`,
    }
  }

  /** Gets the verdict on a received message. */
  readonly received = (envelope: Envelope, verdict: Verdict): void => {
    if (!this.#settings.dmarc) return
    const result = dmarcResult(envelope, verdict)
    if (result && plainDomain.test(result.domain) && !this.#deps.domains.receives(result.domain)) this.#counts.add(result)
  }

  /** Gets the result of a TLS session with another server. */
  readonly connected = ({ domain, policy, failure, ...ends }: TlsResult): void => {
    if (!this.#settings.tls || !plainDomain.test(domain)) return
    const strings = policy.strings.slice(0, maxLines).map((line) => line.slice(0, longestLine))
    const record = {
      policy: { ...policy, strings, mx_hosts: policy.mx_hosts.slice(0, maxLines) },
      failure: failure && { ...failure, ...ends },
    }
    this.#counts.add({ kind: 'tls', domain, policy: {}, record })
  }

  async stop(): Promise<void> {
    await this.#counts.write()
    await this.#outside.close()
  }

  reload(config: Config): void {
    this.#config = config
    this.#settings = reportSettings(config)
    this.#outside.reload(outsideSettings(config))
  }
}

function reportSettings({ reports, mail }: Config): ReportSettings {
  const { dmarc, tls, organization = mail.domain, contact = `postmaster@${mail.domain}` } = reports
  return { dmarc, tls, organization, contact, domain: mail.domain }
}

function outsideSettings({ outbound, fetch, dns }: Config): OutsideSettings {
  const { allow_networks } = outbound
  return { allow_networks, allow_http: false, ca_file: fetch.ca_file, resolve: resolver(dns) }
}
