import type { Config } from '../../config.ts'
import type { CronJob } from '../../core/cron.ts'
import type { Domains } from '../../domains/domains.ts'
import type { AnyRoute } from '../../http/route.ts'
import type { Module, ModuleBasis } from '../../module.ts'
import type { OutboundModule } from '../../outbound/module.ts'
import type { Courier } from '../../queue/courier.ts'
import type { Queue } from '../../queue/queue.ts'
import type { Holds } from '../holds.ts'
import { Digests } from './digests.ts'
import { HoldLinks } from './hold-links.ts'
import { holdLinkRoutes } from './routes.ts'

interface Deps extends ModuleBasis {
  queue: Queue
  holds: Holds
  sending: Pick<OutboundModule, 'signer' | 'transport'>
  domains: Pick<Domains, 'receives' | 'requireSending'>
  /** True if the operator's list has the account. */
  exists: (accountId: string) => boolean
}

/** Digests of open holds by mail, and the links in them. */
export class DigestModule implements Module {
  readonly name = 'digest'
  readonly routes: AnyRoute[]
  readonly couriers: Courier[]
  readonly jobs: CronJob[]
  #isOn: boolean

  constructor(deps: Deps) {
    const { config, sending } = deps
    this.#isOn = config.policy.digest
    const links = new HoldLinks(deps)
    const digests = new Digests({
      ...deps,
      links,
      domain: config.mail.domain,
      isOn: () => this.#isOn,
      sign: (domain, raw) => sending.signer.sign(domain, raw),
      transmit: (mail, signal) => sending.transport.sendSystemMail(mail, signal),
    })
    this.routes = holdLinkRoutes(links)
    this.couriers = [digests]
    this.jobs = [
      { name: 'send-hold-digests', schedule: '20 * * * * *', run: () => digests.enqueue() },
      { name: 'sweep-hold-links', schedule: '29 * * * *', run: () => links.sweep() },
    ]
  }

  reload(config: Config): void {
    this.#isOn = config.policy.digest
  }
}
