import type { Config } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import type { Cursors } from '../core/cursor.ts'
import type { Log } from '../core/log.ts'
import type { Metrics } from '../core/metrics.ts'
import type { Courier } from '../delivery/courier.ts'
import type { Queue } from '../delivery/queue.ts'
import type { Domains } from '../domains/domains.ts'
import type { EventLog } from '../events/log.ts'
import type { EventType } from '../events/model.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Identities } from '../identities/identities.ts'
import type { MailPart } from '../mail/part.ts'
import type { Part } from '../part.ts'
import type { Database } from '../store/database.ts'
import { Bounces } from './bounces.ts'
import {
  emailBounced,
  emailCancelled,
  emailComplained,
  emailDeferred,
  emailDelivered,
  emailFailed,
  emailQueued,
  emailSent,
} from './model.ts'
import { Carriage } from './carriage.ts'
import type { CarriageTest } from './carriage.ts'
import { ReturnPaths } from './return-path.ts'
import { suppressionRoutes } from './routes.ts'
import type { OutboundSettings } from './settings.ts'
import { Suppressions } from './suppressions.ts'

interface Needs {
  database: Database
  events: EventLog
  clock: Clock
  cursors: Cursors
  identities: Identities
  domains: Domains
  queue: Queue
  mail: MailPart
  config: Config
  log: Log
  metrics: Metrics
  returnKey: Buffer
  testing?: CarriageTest | undefined
}

/** Mail out: composing, queueing, delivering, and what comes back of it. */
export class SendingPart implements Part {
  readonly name = 'sending'
  readonly events: EventType[] = [
    emailQueued,
    emailSent,
    emailDelivered,
    emailDeferred,
    emailBounced,
    emailComplained,
    emailFailed,
    emailCancelled,
  ]
  readonly routes: AnyRoute[]
  readonly couriers: Courier[]
  readonly suppressions: Suppressions
  readonly returnPaths: ReturnPaths
  readonly #carriage: Carriage

  constructor(needs: Needs) {
    this.suppressions = new Suppressions(needs)
    this.returnPaths = new ReturnPaths(needs.returnKey, needs.clock)
    const { suppressions, returnPaths } = this
    needs.mail.addDesk(new Bounces({ ...needs, suppressions, returnPaths, outgoing: needs.mail.outgoing }))
    this.routes = suppressionRoutes(this.suppressions)
    this.#carriage = new Carriage({
      ...needs,
      ...needs.testing,
      inbox: needs.mail.inbox,
      outgoing: needs.mail.outgoing,
      suppressions: this.suppressions,
      returnPaths: this.returnPaths,
      listeners: () => needs.mail.addresses,
      settings: outboundSettings(needs.config),
    })
    this.couriers = [this.#carriage.courier]
  }

  async stop(): Promise<void> {
    await this.#carriage.stop()
  }

  reload(config: Config): void {
    this.#carriage.reload(outboundSettings(config))
  }
}

function outboundSettings({ hostname, outbound, dns }: Config): OutboundSettings {
  return { ...outbound, hostname, dns }
}
