import { Keys } from './account/keys.ts'
import { accountPart } from './account/part.ts'
import { backupPart } from './backup/part.ts'
import { cardsPart } from './cards/part.ts'
import { CertificatesPart } from './certificates/part.ts'
import type { Config } from './config.ts'
import type { Clock } from './core/clock.ts'
import { Cursors } from './core/cursor.ts'
import type { Log } from './core/log.ts'
import type { Metrics } from './core/metrics.ts'
import type { Caller } from './core/scopes.ts'
import type { Seal } from './core/seal.ts'
import { Queue } from './delivery/queue.ts'
import { DomainsPart } from './domains/part.ts'
import { ReportDesk } from './domains/report-desk.ts'
import type { EventTypes } from './events/catalogue.ts'
import { EventLog } from './events/log.ts'
import { Identities } from './identities/identities.ts'
import { identitiesPart } from './identities/part.ts'
import { Jobs } from './jobs/jobs.ts'
import { jobsPart } from './jobs/part.ts'
import { codesIn } from './mail/codes.ts'
import { inquire } from './mail/inquire.ts'
import { MailPart } from './mail/part.ts'
import { SignedUrls } from './mail/signed-urls.ts'
import type { Part } from './part.ts'
import { RealtimePart } from './realtime/part.ts'
import type { CarriageTest } from './sending/carriage.ts'
import { SendingPart } from './sending/part.ts'
import { SmsPart } from './sms/part.ts'
import type { Database } from './store/database.ts'
import type { Space } from './store/space.ts'
import { timelinePart } from './timeline/part.ts'
import { Timeline } from './timeline/timeline.ts'
import { Waiting } from './timeline/wait.ts'
import { totpPart } from './totp/part.ts'
import { WebhooksPart } from './webhooks/part.ts'

/** What every box stands on, before it can do anything. */
export interface Basis {
  config: Config
  log: Log
  clock: Clock
  seal: Seal
  database: Database
  space: Space
  metrics: Metrics
  types: EventTypes
  /** The account of the operator. */
  account: string
  publicUrl: () => string
  version: string
  /** How tests reach other servers. */
  testing?: CarriageTest | undefined
}

/** The parts of the box in the order of their start, and what each is given: the one place that wires. */
export function assemble(basis: Basis): {
  parts: Part[]
  keys: Keys
  queue: Queue
  mail: MailPart
  certificates: CertificatesPart
} {
  const { config, log, clock, seal, database, metrics, types, account } = basis
  const logOf = (part: string): Log => log.child({ part })
  const events = new EventLog(database, clock)
  const cursors = new Cursors(seal.key('cursors'))
  const common = { ...basis, events, cursors }
  const queue = new Queue({ ...common, log: logOf('delivery') })
  const keys = new Keys({ ...common, rateLimit: config.http.rate_limit })
  const ours = new DomainsPart({ ...common, log: logOf('domains'), operatorAccount: account, inquire })
  const { domains } = ours
  const identities = new Identities({ ...common, domains, domain: config.mail.domain })
  const certificates = new CertificatesPart({
    ...common,
    log: logOf('certificates'),
    policyHosts: () => domains.policyHosts(),
  })
  const mail = new MailPart({
    ...common,
    certificates: certificates.shown,
    identities,
    hosted: domains,
    log: logOf('smtp'),
    operatorAccount: account,
    urlKey: seal.key('signed urls'),
  })
  mail.addDesk(new ReportDesk({ clock, log: logOf('domains') }))
  const sending = new SendingPart({
    ...common,
    keys,
    identities,
    domains,
    queue,
    mail,
    log: logOf('sending'),
    returnKey: seal.key('return paths'),
  })
  const urls = new SignedUrls({ ...basis, key: seal.key('signed urls') })
  const sms = new SmsPart({ ...common, identities, queue, urls, codesIn, log: logOf('sms') })
  identities.equip(sms.numbers)
  const readers = { clock, events, identities, emails: mail.emails, sms: sms.messages }
  const timeline = new Timeline({ ...readers, cursors, types })
  const admitted = (caller: Caller): Promise<boolean> => keys.stillAdmits(caller)
  const waiting = new Waiting({ ...readers, timeline, admitted })
  const webhooks = new WebhooksPart({ ...common, queue, log: logOf('webhooks') })
  const jobs = new Jobs({ ...common, log: logOf('jobs') })
  identities.onRemove((tx, id) => jobs.leave(tx, id))
  const realtime = new RealtimePart({ ...common, keys, identities, log: logOf('realtime'), tokenKey: seal.key('realtime') })
  metrics.gauge('pillarbox_waiting_calls', 'Calls of wait that are open now', (gauge) => gauge.set(waiting.size))
  return {
    parts: [
      accountPart(keys),
      identitiesPart(identities),
      ours,
      certificates,
      mail,
      sending,
      sms,
      totpPart({ ...common, identities, admitted }),
      cardsPart({ ...common, identities }),
      timelinePart(timeline, waiting),
      webhooks,
      realtime,
      backupPart({ ...common, jobs, log: logOf('backup') }),
      jobsPart(jobs, metrics),
    ],
    keys,
    queue,
    mail,
    certificates,
  }
}
