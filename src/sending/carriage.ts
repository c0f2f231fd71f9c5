import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Metrics } from '../core/metrics.ts'
import { Outside } from '../delivery/outside.ts'
import type { Dial as OutsideDial, OutsideSettings } from '../delivery/outside.ts'
import { recordsOf, resolver } from '../delivery/resolve.ts'
import { SecureDns } from '../delivery/secure-dns.ts'
import type { Domains } from '../domains/domains.ts'
import type { Inbox } from '../mail/inbox.ts'
import type { Outgoing } from '../mail/outgoing.ts'
import type { Database } from '../store/database.ts'
import { Connections } from './connections.ts'
import { MailCourier } from './courier.ts'
import type { Patience, Routing } from './courier.ts'
import { Dane } from './dane.ts'
import type { Dial } from './dial.ts'
import { Handover } from './handover.ts'
import { MailExchangers } from './mx.ts'
import { Outcomes } from './outcomes.ts'
import { Policies } from './policies.ts'
import { Reach } from './reach.ts'
import type { ReturnPaths } from './return-path.ts'
import type { OutboundSettings } from './settings.ts'
import type { Suppressions } from './suppressions.ts'
import { TlsMemory } from './tls-memory.ts'
import { Ways } from './ways.ts'

/** What tests put in place of TCP to mail servers, of TLS to policy hosts, and of the time that an attempt may take. */
export interface CarriageTest {
  dial?: Dial | undefined
  outsideDial?: OutsideDial | undefined
  patience?: Patience | undefined
}

interface Needs extends CarriageTest {
  database: Database
  clock: Clock
  log: Log
  metrics: Metrics
  domains: Domains
  inbox: Inbox
  outgoing: Outgoing
  suppressions: Suppressions
  returnPaths: ReturnPaths
  /** Where this box itself takes mail. */
  listeners: () => { host: string; port: number }[]
  settings: OutboundSettings
}

/** All that carries mail to others, put together; what the settings decide is made anew when they change. */
export class Carriage {
  readonly courier: MailCourier
  readonly #needs: Needs
  readonly #connections = new Connections()
  readonly #outside: Outside
  readonly #memory: TlsMemory
  #routing: Routing

  constructor(needs: Needs) {
    this.#needs = needs
    this.#outside = new Outside(outsideSettings(needs.settings), needs.outsideDial)
    this.#memory = new TlsMemory(needs)
    this.#routing = this.#route(needs.settings)
    this.courier = new MailCourier({ ...needs, outcomes: new Outcomes(needs), routing: () => this.#routing })
    needs.metrics.gauge(
      'pillarbox_mail_connections',
      'Connections to other mail servers: in use or being opened, and idle',
      (gauge) => {
        gauge.labels('busy').set(this.#connections.busy)
        gauge.labels('idle').set(this.#connections.idle)
      },
      ['state'],
    )
  }

  /** Attempts under way end as they began. */
  reload(settings: OutboundSettings): void {
    this.#outside.reload(outsideSettings(settings))
    this.#routing = this.#route(settings)
    this.#connections.drop()
  }

  async stop(): Promise<void> {
    this.#connections.drop()
    await this.#outside.close()
  }

  #route(settings: OutboundSettings): Routing {
    const records = recordsOf(settings.dns)
    const exchangers = new MailExchangers({
      records,
      reach: new Reach(settings.allow_networks, this.#needs.listeners),
      dane: settings.dane ? new Dane(new SecureDns(settings.dns)) : undefined,
      settings,
      dial: this.#needs.dial,
    })
    const policies = new Policies({ ...this.#needs, records, outside: this.#outside })
    return {
      hostname: settings.hostname,
      ways: new Ways(settings, policies),
      handover: new Handover(exchangers, this.#connections, this.#memory),
    }
  }
}

function outsideSettings({ allow_networks, dns }: OutboundSettings): OutsideSettings {
  return { allow_networks, allow_http: false, resolve: resolver(dns) }
}
