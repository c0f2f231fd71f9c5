import type { Plan } from '../account/plan.ts'
import type { Certificates } from '../certificates/certificates.ts'
import type { Config, Endpoint } from '../config.ts'
import { iso } from '../core/clock.ts'
import type { Clock } from '../core/clock.ts'
import type { Job } from '../core/cron.ts'
import type { Cursors } from '../core/cursor.ts'
import type { Log } from '../core/log.ts'
import type { Metrics } from '../core/metrics.ts'
import { DnsTally } from '../delivery/dns-tally.ts'
import type { EventLog } from '../events/log.ts'
import type { EventType } from '../events/model.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Identities } from '../identities/identities.ts'
import type { Part } from '../part.ts'
import type { Trash } from '../retention/trash.ts'
import type { Database } from '../store/database.ts'
import type { Space } from '../store/space.ts'
import { Archive } from './archive.ts'
import { Attachments } from './attachments.ts'
import { sureAuthorOf } from './author.ts'
import { Doors } from './doors.ts'
import type { DoorSettings } from './doors.ts'
import { Emails } from './emails.ts'
import { Examiner } from './examiner.ts'
import type { ExaminerOptions } from './examiner.ts'
import type { ExamineSettings } from './examine.ts'
import { examinerFigures } from './examiner-figures.ts'
import { MailFigures } from './figures.ts'
import { Inbox } from './inbox.ts'
import type { InboxSettings } from './inbox.ts'
import type { Desk, Gate, Hosted, VerdictListener } from './mailroom.ts'
import { emailReceived } from './model.ts'
import { Outgoing } from './outgoing.ts'
import { RawMail } from './raw-mail.ts'
import { Receiver } from './receiver.ts'
import type { ReceiverSettings } from './receiver.ts'
import { routes } from './routes.ts'
import { Screening } from './screening.ts'
import type { ScreeningSettings } from './screening.ts'
import { Search } from './search.ts'
import { Sheets } from './sheets.ts'
import type { SignedUrls } from './signed-urls.ts'
import { Threads } from './threads.ts'

interface Needs {
  database: Database
  events: EventLog
  clock: Clock
  cursors: Cursors
  identities: Identities
  space: Space
  plan: Plan
  trash: Trash
  hosted: Hosted
  certificates: Certificates
  config: Config
  log: Log
  submissionLog: Log
  metrics: Metrics
  operatorAccount: string
  urls: SignedUrls
  testing?: { examiner?: ExaminerOptions | undefined } | undefined
}

/** Longest time in milliseconds from the end of DATA to our answer. */
const dataTimeout = 300_000

/** 500 octets a second, averaged over each minute: slower is nobody's line, but a way to hold ours. */
const pace = { octets: 30_000, within: 60_000 }

/** Mail in: the receiver, the workers that examine, the inbox that keeps, and what callers may ask of it all. */
export class MailPart implements Part {
  readonly name = 'mail'
  readonly events: EventType[] = [emailReceived]
  readonly routes: AnyRoute[]
  readonly emails: Emails
  readonly outgoing: Outgoing
  readonly archive: Archive
  readonly examiner: Examiner
  readonly inbox: Inbox
  /** Where whoever delivers counts what is asked of the DNS. */
  readonly deliveryQueries = new DnsTally()
  readonly #needs: Needs
  readonly #screening: Screening
  readonly #figures: MailFigures
  readonly #desks: Desk[] = []
  #receiver: Receiver | undefined
  #gate: Gate | undefined
  #doors: Doors | undefined
  #config: Config

  constructor(needs: Needs) {
    const { config, log } = needs
    this.#needs = needs
    this.#config = config
    this.#figures = new MailFigures(needs.metrics, {
      smtp: () => this.#receiver?.stats,
      submission: () => this.#doors?.stats,
      limits: () => ({ connections: this.#config.smtp.max_connections, octets: this.#receiver?.budget.limit ?? 0 }),
    })
    this.examiner = new Examiner(examinerSettings(config), log, needs.testing?.examiner)
    this.#screening = new Screening(screeningSettings(config), log)
    this.emails = new Emails({ ...needs, hostname: config.hostname })
    this.outgoing = new Outgoing(needs)
    this.inbox = new Inbox({
      ...needs,
      desks: this.#desks,
      examiner: this.examiner,
      screening: this.#screening,
      settings: inboxSettings(config),
    })
    this.archive = new Archive({
      ...needs,
      examiner: this.examiner,
      hostname: config.hostname,
      quota: () => this.#config.mail.quota,
    })
    this.routes = routes({
      emails: this.emails,
      search: new Search(needs),
      threads: new Threads({ ...needs, emails: this.emails }),
      sheets: new Sheets({ emails: this.emails, examiner: this.examiner }),
      attachments: new Attachments({ emails: this.emails, examiner: this.examiner, urls: needs.urls, cursors: needs.cursors }),
    })
    needs.certificates.follow(() => this.#renew())
    const { queries: checks } = this.examiner
    const { queries: blocklists } = this.#screening
    examinerFigures(needs.metrics, this.examiner, { checks, blocklists, delivery: this.deliveryQueries })
  }

  /** Where mail is received; empty unless started. */
  get addresses(): { host: string; port: number }[] {
    return this.#receiver?.addresses ?? []
  }

  /** What the receiver has counted since the start; undefined unless started. */
  get received(): Receiver['stats'] | undefined {
    return this.#receiver?.stats
  }

  /** Where mail of our own is handed in: with STARTTLS, and with TLS from the first octet. */
  get submissionAddresses(): Doors['addresses'] {
    return this.#doors?.addresses ?? { starttls: [], tls: [] }
  }

  /** The one author of a message, read so that nobody can read another (RFC 5322 3.6.2). */
  readonly authorOf = sureAuthorOf

  get jobs(): Job[] {
    return [{ name: 'let-go-of-raw-mail', schedule: '43 3 * * *', run: (signal) => this.#letGo(signal) }]
  }

  /** Before `start`. */
  addDesk(desk: Desk): void {
    this.#desks.push(desk)
  }

  /** Who hears of the verdict on each message of others'. */
  onVerdict(listener: VerdictListener): void {
    this.inbox.onVerdict(listener)
  }

  /** Who may hand in mail; before `start`. */
  setGate(gate: Gate): void {
    this.#gate = gate
  }

  async start(): Promise<void> {
    const { clock, log, submissionLog } = this.#needs
    this.#receiver = new Receiver(this.#receiverSettings(), this.inbox, log, { figures: this.#figures.of('smtp') })
    await this.#receiver.start()
    if (!this.#gate) return
    this.#doors = new Doors(this.#gate, this.#doorSettings(), {
      clock,
      log: submissionLog,
      budget: this.#receiver.budget,
      figures: this.#figures.of('submission'),
    })
    await this.#doors.start()
  }

  /** The receiver first: what it has taken is kept before the workers go. */
  async stop(): Promise<void> {
    await Promise.all([this.#receiver?.stop(), this.#doors?.stop()])
    await this.examiner.stop()
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
    this.#doors?.reload(this.#doorSettings())
  }

  #receiverSettings(): ReceiverSettings {
    const { hostname, smtp } = this.#config
    const tls = this.#needs.certificates.mail
    return { ...smtp, hostname, tls, listen: smtp.listen.map(spelled), data_timeout: dataTimeout, pace }
  }

  #doorSettings(): DoorSettings {
    const { listen, listen_tls, ...logins } = this.#config.submission
    return { ...this.#receiverSettings(), ...logins, listen: listen.map(spelled), listen_tls: listen_tls.map(spelled) }
  }

  async #letGo(signal: AbortSignal | undefined): Promise<void> {
    const age = this.#config.retention.raw
    if (age === undefined) return
    await new RawMail(this.#needs).sweep(iso(this.#needs.clock.now() - age), signal)
  }
}

function examinerSettings({ hostname, mail, dns }: Config): ExamineSettings {
  return {
    hostname,
    dmarc: mail.dmarc,
    deadline: mail.verdict_timeout,
    trusted_sealers: mail.trusted_sealers,
    dns: { servers: dns.servers, timeout: dns.timeout },
    verify: true,
  }
}

function screeningSettings({ mail, dns }: Config): ScreeningSettings {
  return { dnsbl: mail.dnsbl, rspamd: mail.rspamd, dns: { servers: dns.servers, timeout: dns.timeout } }
}

function inboxSettings({ hostname, mail }: Config): InboxSettings {
  return { hostname, domain: mail.domain, quota: mail.quota, strict_temperror: mail.strict_temperror }
}

function spelled({ host, port }: Endpoint): string {
  return host === undefined ? `[::]:${port}` : `${host.includes(':') ? `[${host}]` : host}:${port}`
}
