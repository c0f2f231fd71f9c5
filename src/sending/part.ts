import type { Keys } from '../account/keys.ts'
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
import type { Space } from '../store/space.ts'
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
import { Outbox } from './outbox.ts'
import { ReturnPaths } from './return-path.ts'
import { suppressionRoutes } from './routes.ts'
import { Submission } from './submission.ts'
import type { SubmissionSettings } from './submitter.ts'
import { Suppressions } from './suppressions.ts'

interface Needs {
  database: Database
  events: EventLog
  clock: Clock
  cursors: Cursors
  keys: Keys
  identities: Identities
  domains: Domains
  queue: Queue
  space: Space
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
  #submission: SubmissionSettings

  constructor(needs: Needs) {
    this.suppressions = new Suppressions(needs)
    this.returnPaths = new ReturnPaths(needs.returnKey, needs.clock)
    this.routes = suppressionRoutes(this.suppressions)
    const { mail } = needs
    this.outbox = new Outbox({ ...needs, examiner: mail.examiner, outgoing: mail.outgoing })
    this.#submission = submissionSettings(needs.config)
    const { suppressions, outbox } = this
    const { authorOf } = mail
    mail.setGate(new Submission({ ...needs, suppressions, outbox, authorOf, settings: () => this.#submission }))
  }

  reload(config: Config): void {
    this.#submission = submissionSettings(config)
  }
}

function submissionSettings({ hostname, mail, outbound }: Config): SubmissionSettings {
  return { hostname, domain: mail.domain, outbound }
}
