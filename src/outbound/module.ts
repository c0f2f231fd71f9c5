import type { Keys } from '../accounts/keys.ts'
import type { Plan } from '../accounts/plan.ts'
import type { Config } from '../config.ts'
import type { CronJob } from '../core/cron.ts'
import type { Courier } from '../queue/courier.ts'
import { Outside, type OutsideSettings } from '../net/outside.ts'
import type { WorkLimiter } from '../net/work-limiter.ts'
import type { Queue } from '../queue/queue.ts'
import { resolver } from '../net/resolve.ts'
import type { Domains } from '../domains/domains.ts'
import type { EventType } from '../events/model.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Cascade } from '../identities/cascade.ts'
import type { Identities } from '../identities/identities.ts'
import { emailReceived } from '../mail/model.ts'
import type { MailModule } from '../mail/module.ts'
import type { Quota } from '../mail/quota.ts'
import type { Module, ModuleBasis } from '../module.ts'
import type { PolicyModule } from '../policy/module.ts'
import { Bounces } from './bounces.ts'
import {
  emailApproved,
  emailBounced,
  emailCancelled,
  emailComplained,
  emailDeferred,
  emailDelivered,
  emailExpired,
  emailFailed,
  emailHeld,
  emailQueued,
  emailRejected,
  emailSent,
  largestMessage,
} from './model.ts'
import { OutboundTransport, type TransportTest } from './transport/outbound-transport.ts'
import { Composer } from './compose/composer.ts'
import { Drafts } from './compose/drafts.ts'
import { emailRoutes } from './email-routes.ts'
import { HeldEmails } from './compose/held-emails.ts'
import { SendService } from './compose/send-service.ts'
import { SendLimits } from './compose/limits.ts'
import { OperatorMail } from './operator-mail.ts'
import { Outbox } from './compose/outbox.ts'
import { Pending } from './compose/pending.ts'
import { DuePolicy } from './compose/due-policy.ts'
import { Release } from './compose/release.ts'
import { ReturnPaths } from './return-path.ts'
import { suppressionRoutes } from './routes.ts'
import { forgetPolicies } from './transport/policies.ts'
import type { OutboundSettings } from './transport/routing.ts'
import { DkimSigner } from './compose/signing.ts'
import { Submission, type SubmissionSettings } from './submission.ts'
import { Suppressions } from './suppressions.ts'

interface Deps extends ModuleBasis {
  keys: Keys
  identities: Identities
  cascade: Cascade
  domains: Domains
  queue: Queue
  plan: Plan
  quota: Quota
  mail: MailModule
  fetches: WorkLimiter
  policy: PolicyModule
  returnKey: Buffer
  testing?: TransportTest | undefined
}

/** Outgoing mail: composing, queueing, delivery and bounces. */
export class OutboundModule implements Module {
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
    emailHeld,
    emailApproved,
    emailRejected,
    emailExpired,
  ]
  readonly routes: AnyRoute[]
  readonly couriers: Courier[]
  readonly suppressions: Suppressions
  readonly returnPaths: ReturnPaths
  readonly transport: OutboundTransport
  readonly outbox: Outbox
  readonly signer: DkimSigner
  readonly #deps: Deps
  readonly #composer: Composer
  readonly #limits: SendLimits
  readonly #outside: Outside
  readonly #pending: Pending
  readonly #operatorMail: OperatorMail
  #stopFollowing: (() => Promise<void>) | undefined
  #submission: SubmissionSettings

  constructor(deps: Deps) {
    this.#deps = deps
    this.suppressions = new Suppressions(deps)
    this.returnPaths = new ReturnPaths(deps.returnKey, deps.clock)
    const { suppressions, returnPaths } = this
    deps.mail.addSystemAddressHandler(new Bounces({ ...deps, suppressions, returnPaths, outgoing: deps.mail.outgoing }))
    const { config, clock, mail } = deps
    this.#limits = new SendLimits(clock, config.outbound)
    this.signer = new DkimSigner(deps)
    const { signer } = this
    this.#composer = new Composer(deps.log)
    this.outbox = new Outbox({
      ...deps,
      outgoing: mail.outgoing,
      composer: this.#composer,
      examiner: mail.examiner,
      suppressions: this.suppressions,
      limits: this.#limits,
      signer,
      policyCheck: deps.policy.policyCheck,
      holds: deps.policy.holds,
      settings: config.outbound,
    })
    const { emails, outgoing } = mail
    this.#outside = new Outside(outsideSettings(config))
    const drafts = new Drafts({ clock, outside: this.#outside })
    const sendService = new SendService({ ...deps, emails, reader: mail.attachmentReader, drafts, outbox: this.outbox })
    const held = { ...deps, emails, outgoing, outbox: this.outbox, limits: this.#limits, policyCheck: deps.policy.policyCheck }
    deps.policy.holds.serve('email', new HeldEmails(held))
    this.#pending = new Pending({ ...held, drafts, holds: deps.policy.holds })
    this.#operatorMail = new OperatorMail({ ...deps, sendService, outbox: this.outbox, ...operatorSettings(config) })
    emails.setDispatcher(this.#pending)
    this.#submission = submissionSettings(config)
    mail.setSubmissionAuth(new Submission({ ...deps, suppressions, outbox: this.outbox, settings: () => this.#submission }))
    this.transport = new OutboundTransport({
      ...deps,
      ...deps.testing,
      inbox: deps.mail.inbox,
      outgoing: deps.mail.outgoing,
      queries: deps.mail.deliveryQueries,
      suppressions: this.suppressions,
      returnPaths: this.returnPaths,
      signer,
      listeners: () => deps.mail.addresses,
      settings: outboundSettings(deps.config),
    })
    const { policyCheck, holds } = deps.policy
    const duePolicy = new DuePolicy({ ...deps, outgoing, examiner: mail.examiner, policyCheck, holds })
    this.couriers = [this.transport.courier, new Release({ ...deps, outgoing, signer, duePolicy }), this.#operatorMail]
    this.routes = [...emailRoutes(sendService, this.#pending, emails), ...suppressionRoutes(this.suppressions)]
  }

  get jobs(): CronJob[] {
    const { database } = this.#deps
    return [
      { name: 'clear-sent-counts', schedule: '41 4 * * *', run: () => database.transaction((tx) => this.#limits.clear(tx)) },
      { name: 'forget-mta-sts-policies', schedule: '27 * * * *', run: (signal) => forgetPolicies(this.#deps, signal) },
      // in case a stop of the box interrupted them
      { name: 'cancel-mail-of-ended-keys', schedule: '19 * * * *', run: (signal) => this.#pending.withdrawEnded(signal) },
      { name: 'retry-mail-of-resumed-identities', schedule: '49 * * * *', run: (signal) => this.#pending.retryResumed(signal) },
    ]
  }

  async start(): Promise<void> {
    const { events, log } = this.#deps
    this.#stopFollowing = events.follow('sending', (tx, batch) => this.#operatorMail.handle(tx, batch), log, {
      types: [emailReceived.name],
      filter: (batch) => this.#operatorMail.concerns(batch),
    })
  }

  async stop(): Promise<void> {
    await this.#stopFollowing?.()
    await this.transport.stop()
    await this.#composer.stop()
    await this.#outside.close()
  }

  reload(config: Config): void {
    this.transport.reload(outboundSettings(config))
    this.#limits.reload(config.outbound)
    this.outbox.reload(config.outbound)
    this.#outside.reload(outsideSettings(config))
    this.#operatorMail.reload(config.mail.postmaster)
    this.#submission = submissionSettings(config)
  }
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

function submissionSettings({ hostname, mail }: Config): SubmissionSettings {
  return { hostname, domain: mail.domain }
}
