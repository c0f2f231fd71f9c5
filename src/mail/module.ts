import type { Plan } from '../accounts/plan.ts'
import type { Certificates } from '../certificates/certificates.ts'
import type { Config } from '../config.ts'
import { iso } from '../core/clock.ts'
import type { CronJob } from '../core/cron.ts'
import type { Log } from '../core/log.ts'
import { DnsTally } from '../net/dns-tally.ts'
import type { BoundEndpoint } from '../net/listen.ts'
import type { EventType } from '../events/model.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Identities } from '../identities/identities.ts'
import type { Module, ModuleBasis } from '../module.ts'
import type { RawMessages } from '../objects/raw-messages.ts'
import type { Trash } from '../ops/retention/trash.ts'
import { MailArchive } from './archive.ts'
import { BulkChanges } from './bulk.ts'
import { AttachmentReader } from './workers/attachment-reader.ts'
import { AttachmentTexts } from './documents/attachment-texts.ts'
import { Attachments, type SignedUrls } from './attachments.ts'
import { DocumentReader } from './documents/document-reader.ts'
import { FailedLogins, SharedFailedLogins } from '../smtp/failed-logins.ts'
import { SubmissionListeners, type SubmissionListenerSettings } from '../smtp/submission-listeners.ts'
import { EmailStore } from './email-store.ts'
import { Emails } from './emails.ts'
import { Examiner, type ExaminerOptions } from './workers/examiner.ts'
import type { ExamineSettings } from './workers/examine.ts'
import { examinerMetrics } from './workers/metrics.ts'
import { MailMetrics } from '../smtp/metrics.ts'
import { Inbox, type InboxSettings } from './inbox.ts'
import type { Hosted, SubmissionAuth, SystemAddressHandler } from '../smtp/delivery-target.ts'
import { emailReceived, emailReleased } from './model.ts'
import { OutgoingEmails } from './outgoing.ts'
import type { Quota } from './quota.ts'
import { Receiver, type ReceiverSettings } from '../smtp/receiver.ts'
import { Releases } from './senders/releases.ts'
import { routes } from './routes.ts'
import { senderRoutes } from './senders/routes.ts'
import { SenderRulesStore } from './senders/rules.ts'
import { Screening, type ScreeningSettings } from '../mailauth/screening.ts'
import { searchEmails } from './search/search.ts'
import { htmlView } from './html-view.ts'
import { Threads } from './threads.ts'
import { sweepRawMail } from './trash.ts'

interface Deps extends ModuleBasis {
  identities: Identities
  plan: Plan
  trash: Trash
  quota: Quota
  raw: RawMessages
  hosted: Hosted
  certificates: Certificates
  submissionLog: Log
  urls: SignedUrls
  testing?: { examiner?: ExaminerOptions | undefined } | undefined
}

/** Timeout from the end of DATA to our reply, in milliseconds. */
const dataTimeout = 300_000

/** The minimum rate of message data: 500 bytes a second, averaged over each minute. Slower clients are abusive. */
const pace = { octets: 30_000, within: 60_000 }

/** Incoming and stored mail: the receiver, the examiner, the inbox, and the routes for e-mails. */
export class MailModule implements Module {
  readonly name = 'mail'
  readonly events: EventType[] = [emailReceived, emailReleased]
  readonly routes: AnyRoute[]
  readonly emails: Emails
  readonly outgoing: OutgoingEmails
  readonly archive: MailArchive
  readonly examiner: Examiner
  readonly attachmentReader: AttachmentReader
  readonly inbox: Inbox
  /** Counts the DNS queries of outbound delivery. */
  readonly deliveryQueries = new DnsTally()
  readonly #deps: Deps
  readonly #screening: Screening
  readonly #metrics: MailMetrics
  readonly #documents: DocumentReader
  readonly #handlers: SystemAddressHandler[] = []
  /** Where several boxes count failed logins together. */
  readonly #sharedLogins: SharedFailedLogins | undefined
  #receiver: Receiver | undefined
  #submissionAuth: SubmissionAuth | undefined
  #submission: SubmissionListeners | undefined
  #config: Config

  constructor(deps: Deps) {
    const { config, log } = deps
    this.#deps = deps
    this.#config = config
    this.#metrics = new MailMetrics(deps.metrics, {
      smtp: () => this.#receiver?.stats,
      submission: () => this.#submission?.stats,
      limits: () => ({ connections: this.#config.smtp.max_connections, octets: this.#receiver?.budget.limit ?? 0 }),
    })
    this.examiner = new Examiner(examinerSettings(config), log, deps.testing?.examiner)
    this.#screening = new Screening(screeningSettings(config), log)
    this.emails = new Emails({ ...deps, hostname: config.hostname })
    const reader = new AttachmentReader({ emails: this.emails, examiner: this.examiner })
    this.attachmentReader = reader
    this.#documents = new DocumentReader(log)
    const store = new EmailStore(deps)
    this.outgoing = new OutgoingEmails({ ...deps, store })
    const rules = new SenderRulesStore(deps)
    this.inbox = new Inbox({
      ...deps,
      rules,
      store,
      handlers: this.#handlers,
      examiner: this.examiner,
      screening: this.#screening,
      settings: inboxSettings(config),
    })
    this.archive = new MailArchive({ ...deps, store, examiner: this.examiner, hostname: config.hostname })
    const searching = { ...deps, withBodies: this.emails.rowsWithBodies.bind(this.emails) }
    const own = routes({
      emails: this.emails,
      search: (caller, id, input) => searchEmails(searching, caller, id, input),
      bulk: new BulkChanges({ ...deps, emails: this.emails }),
      threads: new Threads({ ...deps, emails: this.emails }),
      html: (caller, id, emailId, how) => htmlView({ emails: this.emails, reader }, caller, id, emailId, how),
      attachments: new Attachments({ emails: this.emails, reader, urls: deps.urls, cursors: deps.cursors }),
      listBodies: () => this.#config.mail.list_bodies,
      texts: new AttachmentTexts({ emails: this.emails, reader, documents: this.#documents }),
    })
    this.routes = [...own, ...senderRoutes(rules, new Releases({ ...deps, emails: this.emails, store }))]
    const { database, clock, seal } = deps
    if (database.several) this.#sharedLogins = new SharedFailedLogins({ database, clock, key: seal.key('failed logins') })
    deps.certificates.follow(() => this.#renew())
    const { queries: checks } = this.examiner
    const { queries: blocklists } = this.#screening
    examinerMetrics(deps.metrics, this.examiner, { checks, blocklists, delivery: this.deliveryQueries })
  }

  /** The addresses of the receiver; empty unless started. */
  get addresses(): BoundEndpoint[] {
    return this.#receiver?.addresses ?? []
  }

  /** Counts of the receiver since the start; undefined unless started. */
  get received(): Receiver['stats'] | undefined {
    return this.#receiver?.stats
  }

  /** The addresses of the submission listeners: with STARTTLS, and with implicit TLS. */
  get submissionAddresses(): SubmissionListeners['addresses'] {
    return this.#submission?.addresses ?? { starttls: [], tls: [] }
  }

  get jobs(): CronJob[] {
    const logins = this.#sharedLogins
    return [
      { name: 'let-go-of-raw-mail', schedule: '43 3 * * *', run: (signal) => this.#sweepRaw(signal) },
      ...(logins ? [{ name: 'sweep-failed-logins', schedule: '47 * * * * *', run: () => logins.sweep() }] : []),
    ]
  }

  /** Called before `start`. */
  addSystemAddressHandler(handler: SystemAddressHandler): void {
    this.#handlers.push(handler)
  }

  /** Sets the authentication of message submission. Called before `start`. */
  setSubmissionAuth(submissionAuth: SubmissionAuth): void {
    this.#submissionAuth = submissionAuth
  }

  async start(): Promise<void> {
    const { clock, log, submissionLog } = this.#deps
    this.#receiver = new Receiver(this.#receiverSettings(), this.inbox, log, { metrics: this.#metrics.of('smtp') })
    await this.#receiver.start()
    if (!this.#submissionAuth) return
    this.#submission = new SubmissionListeners(this.#submissionAuth, this.#submissionSettings(), {
      failed: this.#sharedLogins ?? new FailedLogins(clock),
      log: submissionLog,
      budget: this.#receiver.budget,
      metrics: this.#metrics.of('submission'),
    })
    await this.#submission.start()
  }

  /** Stops the receivers first, so that messages being received are stored before the workers end. */
  async stop(): Promise<void> {
    await Promise.all([this.#receiver?.stop(), this.#submission?.stop()])
    await Promise.all([this.#documents.stop(), this.examiner.stop()])
  }

  reload(config: Config): void {
    this.examiner.reload(examinerSettings(config))
    this.#screening.reload(screeningSettings(config))
    this.inbox.reload(inboxSettings(config))
    this.#config = config
    this.#renew()
  }

  #renew(): void {
    this.#receiver?.reload(this.#receiverSettings())
    this.#submission?.reload(this.#submissionSettings())
  }

  #receiverSettings(): ReceiverSettings {
    const { hostname, smtp } = this.#config
    const tls = this.#deps.certificates.mail
    return { ...smtp, hostname, tls, data_timeout: dataTimeout, pace }
  }

  #submissionSettings(): SubmissionListenerSettings {
    return { ...this.#receiverSettings(), ...this.#config.submission }
  }

  async #sweepRaw(signal: AbortSignal | undefined): Promise<void> {
    const age = this.#config.retention.raw
    if (age === undefined) return
    await sweepRawMail(this.#deps, iso(this.#deps.clock.now() - age), signal)
  }
}

function examinerSettings({ hostname, mail, dns }: Config): ExamineSettings {
  return {
    hostname,
    dmarc: mail.dmarc,
    deadline: mail.verdict_timeout,
    trusted_sealers: mail.trusted_sealers,
    dns,
    verify: true,
  }
}

function screeningSettings({ mail, dns }: Config): ScreeningSettings {
  return { dnsbl: mail.dnsbl, rspamd: mail.rspamd, dns }
}

function inboxSettings({ hostname, mail }: Config): InboxSettings {
  return { hostname, domain: mail.domain, strict_temperror: mail.strict_temperror }
}
