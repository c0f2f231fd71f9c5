import type { AddressInfo } from 'node:net'
import { AccountPart } from './account/part.ts'
import { Plan } from './account/plan.ts'
import { idOfKey } from './account/secret.ts'
import { Agents } from './agents/agents.ts'
import { AgentsPart } from './agents/part.ts'
import { backupPart } from './backup/part.ts'
import { Shelf } from './backup/shelf.ts'
import { cardsPart } from './cards/part.ts'
import { CertificatesPart } from './certificates/part.ts'
import type { Config } from './config.ts'
import type { Clock } from './core/clock.ts'
import type { ScheduleTest } from './core/cron.ts'
import { Cursors } from './core/cursor.ts'
import type { Log, Module } from './core/log.ts'
import type { Metrics } from './core/metrics.ts'
import type { PlanLimits } from './core/planned.ts'
import type { Caller } from './core/scopes.ts'
import type { Seal } from './core/seal.ts'
import { FetchRoom } from './delivery/fetch-room.ts'
import { Queue } from './delivery/queue.ts'
import type { DoctorTest } from './doctor/outer-checks.ts'
import { presentListeners } from './doctor/listeners.ts'
import { DoctorPart } from './doctor/part.ts'
import type { RsaPair } from './domains/keys.ts'
import { DomainsPart } from './domains/part.ts'
import { ReportDesk } from './domains/report-desk.ts'
import type { EventTypes } from './events/catalogue.ts'
import { eventFigures } from './events/figures.ts'
import { EventLog } from './events/log.ts'
import { FiguresPart } from './figures/part.ts'
import { Aliases } from './identities/aliases.ts'
import { Identities } from './identities/identities.ts'
import { localPartOf } from './identities/names.ts'
import { identitiesPart } from './identities/part.ts'
import { Jobs } from './jobs/jobs.ts'
import { jobsPart } from './jobs/part.ts'
import { codesIn } from './mail/codes.ts'
import type { ExaminerOptions } from './mail/examiner.ts'
import { inquire } from './mail/inquire.ts'
import { linksIn } from './mail/links.ts'
import { MailPart } from './mail/part.ts'
import { SignedUrls } from './mail/signed-urls.ts'
import { operationPart } from './operation/part.ts'
import type { Reloaded } from './operation/model.ts'
import { pagePart } from './page/part.ts'
import type { Part } from './part.ts'
import { RealtimePart } from './realtime/part.ts'
import { ReportingPart } from './reporting/part.ts'
import { RetentionPart } from './retention/part.ts'
import type { CarriageTest } from './sending/carriage.ts'
import { SendingPart } from './sending/part.ts'
import { SmsPart } from './sms/part.ts'
import type { Database } from './store/database.ts'
import type { MigrationTest } from './store/migrate.ts'
import type { Space } from './store/space.ts'
import type { StateFile } from './store/state.ts'
import { timelinePart } from './timeline/part.ts'
import { Timeline } from './timeline/timeline.ts'
import { Waiting } from './timeline/wait.ts'
import { TokensPart } from './tokens/part.ts'
import { codeAt } from './totp/codes.ts'
import { totpPart } from './totp/part.ts'
import { TransferPart } from './transfer/part.ts'
import { TrustPart } from './trust/part.ts'
import { Reputations } from './trust/reputations.ts'
import { WebhooksPart } from './webhooks/part.ts'

/** What tests put in place of other servers, and of the machine. */
export interface Testing extends CarriageTest, MigrationTest {
  doctor?: DoctorTest
  examiner?: ExaminerOptions
  rsaPair?: RsaPair
  schedule?: ScheduleTest
}

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
  state: StateFile
  publicUrl: () => string
  version: string
  /** Where the API is served. */
  httpAddresses: () => { plain?: AddressInfo; tls?: AddressInfo }
  /** What of the box does not work now. */
  failing: () => Promise<string[]>
  /** Reads the settings again. */
  reread: () => Promise<Reloaded>
  testing?: Testing | undefined
}

/** The parts of the box in the order of their start, and what each is given: the one place that wires. */
export function assemble(basis: Basis): {
  parts: Part[]
  people: AccountPart
  queue: Queue
  mail: MailPart
  trust: TrustPart
  certificates: CertificatesPart
  plan: Plan
  identities: Identities
} {
  const { config, log, clock, seal, database, metrics, types, account, state } = basis
  const logOf = (part: Module): Log => log.child({ part })
  const cursors = new Cursors(seal.key('cursors'))
  const limitsOf = (id: string): PlanLimits | undefined => state.data.accounts.find((one) => one.id === id)?.limits
  const plan = new Plan({ ...basis, limits: config.limits, limitsOf })
  const events = new EventLog(database, clock, plan)
  eventFigures(metrics, events)
  const common = { ...basis, events, cursors, plan }
  const keeping = new RetentionPart({ ...common, log: logOf('retention') })
  const { trash } = keeping
  const queue = new Queue({ ...common, log: logOf('delivery'), kept: keeping.deliveries })
  const people = new AccountPart({ ...common, codeAt, log: logOf('account') })
  const { keys, holders } = people
  const ours = new DomainsPart({ ...common, log: logOf('domains'), operatorAccount: account, inquire })
  const { domains } = ours
  const identities = new Identities({ ...common, domains, domain: config.mail.domain, storageOf: keeping.stores.of })
  keeping.serve(identities)
  const aliases = new Aliases({ ...common, domains, identities })
  const urls = new SignedUrls({ ...basis, holders, key: seal.key('signed urls') })
  const certificates = new CertificatesPart({
    ...common,
    log: logOf('certificates'),
    policyHosts: () => domains.policyHosts(),
  })
  const mail = new MailPart({
    ...common,
    certificates: certificates.shown,
    trash,
    identities,
    hosted: domains,
    log: logOf('smtp'),
    submissionLog: logOf('submission'),
    operatorAccount: account,
    urls,
  })
  mail.addDesk(new ReportDesk({ clock, log: logOf('domains') }))
  const fetches = new FetchRoom()
  const sending = new SendingPart({
    ...common,
    trash,
    keys,
    identities,
    domains,
    queue,
    mail,
    fetches,
    log: logOf('outbound'),
    returnKey: seal.key('return paths'),
  })
  const reporting = new ReportingPart({
    ...common,
    queue,
    sending,
    domains,
    inquire,
    outsideDial: basis.testing?.outsideDial,
    log: logOf('reporting'),
  })
  mail.onVerdict(reporting.received)
  sending.onTls(reporting.connected)
  const sms = new SmsPart({ ...common, trash, identities, queue, urls, fetches, codesIn, log: logOf('sms') })
  identities.equip(sms.numbers)
  const readers = { clock, events, identities, emails: mail.emails, sms: sms.messages }
  const timeline = new Timeline({ ...readers, database, cursors, types })
  const admitted = (caller: Caller): Promise<boolean> => holders.stillAdmits(caller)
  const waiting = new Waiting({ ...readers, admitted, linksIn })
  const agents = new Agents({ ...common, identities, transliterate: localPartOf })
  const tokens = new TokensPart({ ...common, identities, agents, log: logOf('tokens') })
  const reputations = new Reputations({ ...common, identities, agents })
  tokens.equip(reputations)
  const { keys: signer, judge, resolver } = tokens
  const trust = new TrustPart({ ...common, identities, agents, reputations, signer, judge, resolver, log: logOf('trust') })
  const webhooks = new WebhooksPart({ ...common, keys, queue, log: logOf('webhooks') })
  const jobs = new Jobs({ ...common, keys, log: logOf('jobs') })
  identities.onRemove((tx, id) => jobs.leave(tx, id))
  const realtime = new RealtimePart({ ...common, holders, identities, log: logOf('realtime'), tokenKey: seal.key('realtime') })
  const doctor = new DoctorPart({
    ...common,
    keyOf: (key) => idOfKey(database, key),
    listening: () => presentListeners(basis.httpAddresses(), mail),
    inquire: ({ hostname, dns }) => inquire({ hostname, dns }),
    standing: ours.standing,
    probe: (domain, signal) => sending.probe(domain, signal),
    isOurs: (domain) => domains.receives(domain),
    carrier: sms.provider,
    reports: () => reporting.status(),
    newestBackup: async (settings) => {
      const last = await new Shelf(settings).newest(state.data.box_id)
      return last && { name: last.name, created_at: last.manifest.created_at, keys: last.manifest.keys === 'sealed' }
    },
    testing: basis.testing?.doctor,
    log: logOf('doctor'),
  })
  metrics.gauge('pillarbox_waiting_calls', 'Calls of wait that are open now', (gauge) => gauge.set(waiting.size))
  const transfer = new TransferPart({
    ...common,
    identities,
    jobs,
    mail: mail.archive,
    sms: sms.archive,
    urls,
    routes: () => parts.flatMap((part) => part.routes ?? []),
  })
  const parts: Part[] = [
    // started first and stopped last: what the others still do then is counted
    new FiguresPart({ ...common, received: () => mail.received, log: logOf('figures') }),
    reporting,
    people,
    identitiesPart(identities, aliases),
    ours,
    certificates,
    mail,
    sending,
    sms,
    totpPart({ ...common, identities, admitted }),
    cardsPart({ ...common, identities, keeping }),
    new AgentsPart({ ...common, agents, signer: tokens.keys }),
    tokens,
    trust,
    timelinePart(timeline, waiting),
    webhooks,
    realtime,
    doctor,
    transfer,
    backupPart({ ...common, jobs, log: logOf('backup') }),
    jobsPart(jobs, metrics),
    keeping,
    operationPart({ ...common, queue }),
    pagePart(),
  ]
  return { parts, people, queue, mail, trust, certificates, plan, identities }
}
