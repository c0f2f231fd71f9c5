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
import { Limits } from './limits.ts'
import { Outbox } from './outbox.ts'
import { ReturnPaths } from './return-path.ts'
import { suppressionRoutes } from './routes.ts'
import { Signer } from './signing.ts'
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
  readonly couriers: Courier[] = []
  readonly suppressions: Suppressions
  readonly returnPaths: ReturnPaths
  readonly outbox: Outbox
  readonly #limits: Limits

  constructor(needs: Needs) {
    this.suppressions = new Suppressions(needs)
    this.returnPaths = new ReturnPaths(needs.returnKey, needs.clock)
    const { config, clock, mail } = needs
    this.#limits = new Limits(clock, config.outbound)
    this.outbox = new Outbox({
      ...needs,
      outgoing: mail.outgoing,
      examiner: mail.examiner,
      suppressions: this.suppressions,
      limits: this.#limits,
      signer: new Signer(needs),
      settings: config.outbound,
    })
    this.routes = suppressionRoutes(this.suppressions)
  }

  reload({ outbound }: Config): void {
    this.#limits.reload(outbound)
    this.outbox.reload(outbound)
  }
}
