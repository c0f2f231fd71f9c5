import type { Keys } from '../account/keys.ts'
import type { Plan } from '../account/plan.ts'
import type { Config } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import type { Cursors } from '../core/cursor.ts'
import type { Job } from '../core/cron.ts'
import type { Log } from '../core/log.ts'
import type { Metrics } from '../core/metrics.ts'
import type { Courier } from '../delivery/courier.ts'
import { Outside } from '../delivery/outside.ts'
import type { OutsideSettings } from '../delivery/outside.ts'
import type { FetchRoom } from '../delivery/fetch-room.ts'
import type { Queue } from '../delivery/queue.ts'
import { resolver } from '../delivery/resolve.ts'
import type { Domains } from '../domains/domains.ts'
import type { EventLog } from '../events/log.ts'
import type { EventType, Happening } from '../events/model.ts'
import type { AnyRoute } from '../http/route.ts'
import { identityDeleted } from '../identities/model.ts'
import type { Identities } from '../identities/identities.ts'
import { emailReceived } from '../mail/model.ts'
import type { MailPart } from '../mail/part.ts'
import type { Part } from '../part.ts'
import type { Trash } from '../retention/trash.ts'
import type { Database, Transaction } from '../store/database.ts'
import type { Space } from '../store/space.ts'
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
  largestMessage,
} from './model.ts'
import { Carriage } from './carriage.ts'
import type { CarriageTest, Handed, SystemMail } from './carriage.ts'
import { Composer } from './composer.ts'
import { Drafts } from './drafts.ts'
import { emailRoutes } from './email-routes.ts'
import { Letters } from './letters.ts'
import { Limits } from './limits.ts'
import { OperatorMail } from './operator-mail.ts'
import { Outbox } from './outbox.ts'
import type { OutboxSettings } from './outbox.ts'
import { Pending } from './pending.ts'
import { Release } from './release.ts'
import { ReturnPaths } from './return-path.ts'
import { suppressionRoutes } from './routes.ts'
import type { OutboundSettings } from './settings.ts'
import { Signer } from './signing.ts'
import { Submission } from './submission.ts'
import type { SubmissionSettings } from './submitter.ts'
import { Suppressions } from './suppressions.ts'
import type { TlsListener } from './tls-result.ts'

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
  plan: Plan
  trash: Trash
  mail: MailPart
  config: Config
  log: Log
  metrics: Metrics
  fetches: FetchRoom
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
  readonly outbox: Outbox
  readonly signer: Signer
  readonly #needs: Needs
  readonly #composer: Composer
  readonly #limits: Limits
  readonly #outside: Outside
  readonly #pending: Pending
  readonly #operatorMail: OperatorMail
  #stopFollowing: (() => Promise<void>) | undefined
  #submission: SubmissionSettings

  constructor(needs: Needs) {
    this.#needs = needs
    this.suppressions = new Suppressions(needs)
    this.returnPaths = new ReturnPaths(needs.returnKey, needs.clock)
    const { suppressions, returnPaths } = this
    needs.mail.addDesk(new Bounces({ ...needs, suppressions, returnPaths, outgoing: needs.mail.outgoing }))
    const { config, clock, mail } = needs
    this.#limits = new Limits(clock, config.outbound)
    this.signer = new Signer(needs)
    const { signer } = this
    this.#composer = new Composer(needs.log)
    this.outbox = new Outbox({
      ...needs,
      outgoing: mail.outgoing,
      composer: this.#composer,
      examiner: mail.examiner,
      suppressions: this.suppressions,
      limits: this.#limits,
      signer,
      settings: outboxSettings(config),
    })
    const { emails, outgoing, examiner } = mail
    this.#outside = new Outside(outsideSettings(config))
    const drafts = new Drafts({ clock, outside: this.#outside })
    const letters = new Letters({ ...needs, emails, examiner, drafts, outbox: this.outbox })
    this.#pending = new Pending({ ...needs, emails, outgoing, drafts, outbox: this.outbox, limits: this.#limits })
    this.#operatorMail = new OperatorMail({ ...needs, outgoing, letters, outbox: this.outbox, ...operatorSettings(config) })
    emails.attach(this.#pending)
    needs.identities.onResume((tx, identityId) => this.#pending.resume(tx, identityId))
    this.#submission = submissionSettings(config)
    const { authorOf } = mail
    mail.setGate(new Submission({ ...needs, suppressions, outbox: this.outbox, authorOf, settings: () => this.#submission }))
    this.#carriage = new Carriage({
      ...needs,
      ...needs.testing,
      inbox: needs.mail.inbox,
      outgoing: needs.mail.outgoing,
      queries: needs.mail.deliveryQueries,
      suppressions: this.suppressions,
      returnPaths: this.returnPaths,
      listeners: () => needs.mail.addresses,
      settings: outboundSettings(needs.config),
    })
    this.couriers = [this.#carriage.courier, new Release({ ...needs, outgoing, signer }), this.#operatorMail]
    this.routes = [...emailRoutes(letters, this.#pending, emails), ...suppressionRoutes(this.suppressions)]
  }

  get jobs(): Job[] {
    const { database } = this.#needs
    return [
      { name: 'clear-sent-counts', schedule: '41 4 * * *', run: () => database.transaction((tx) => this.#limits.clear(tx)) },
      // what a stop of the box cut short
      { name: 'cancel-mail-of-ended-keys', schedule: '19 * * * *', run: () => this.#pending.withdrawEnded() },
    ]
  }

  async start(): Promise<void> {
    const { events, log } = this.#needs
    this.#stopFollowing = events.follow('sending', (tx, batch) => this.#hear(tx, batch), log, {
      types: [emailReceived.name, identityDeleted.name],
      concerns: (batch) => this.#operatorMail.concerns(batch),
    })
  }

  async stop(): Promise<void> {
    await this.#stopFollowing?.()
    await this.#carriage.stop()
    await this.#composer.stop()
    await this.#outside.close()
  }

  /** Reaches the server that takes mail for a domain, and hangs up; answers who it is. Throws a sentence. */
  probe(domain: string, signal: AbortSignal): Promise<string> {
    return this.#carriage.probe(domain, signal)
  }

  /** Hands over a message that no identity sends, to a domain that is not ours. */
  transmit(mail: SystemMail, signal: AbortSignal): Promise<Handed> {
    return this.#carriage.transmit(mail, signal)
  }

  /** Who hears how TLS sessions with servers of others went. */
  onTls(listener: TlsListener): void {
    this.#carriage.onTls(listener)
  }

  reload(config: Config): void {
    this.#carriage.reload(outboundSettings(config))
    this.#limits.reload(config.outbound)
    this.outbox.reload(outboxSettings(config))
    this.#outside.reload(outsideSettings(config))
    this.#operatorMail.reload(config.mail.postmaster)
    this.#submission = submissionSettings(config)
  }

  async #hear(tx: Transaction, batch: Happening[]): Promise<void> {
    await this.#operatorMail.hear(tx, batch)
    for (const { type, identity_id } of batch) {
      if (type === identityDeleted.name && identity_id !== null) await this.#pending.withdrawAll(tx, identity_id)
    }
  }
}

function outboxSettings({ outbound, mail }: Config): OutboxSettings {
  return { ...outbound, quota: mail.quota, operator: `postmaster@${mail.domain}` }
}

function outboundSettings({ hostname, outbound, dns }: Config): OutboundSettings {
  return { ...outbound, hostname, dns }
}

function outsideSettings({ fetch, dns }: Config): OutsideSettings {
  return { ...fetch, allow_http: false, largest: 2 * largestMessage, resolve: resolver(dns) }
}

function operatorSettings({ mail }: Config): { domain: string; address: string | undefined } {
  return { domain: mail.domain, address: mail.postmaster }
}

function submissionSettings({ hostname, mail, outbound }: Config): SubmissionSettings {
  return { hostname, domain: mail.domain, outbound }
}
