import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { accountResumed, accountStopped, keyCreated, keyRevoked, keyRotated } from './accounts/model.ts'
import type { PasswordCost } from './accounts/sign-in/password-hash.ts'
import { AccountsModule } from './accounts/module.ts'
import { Plan } from './accounts/plan.ts'
import { idOfKey } from './accounts/secret.ts'
import { Agents } from './agents/agents.ts'
import { agentsModule } from './agents/module.ts'
import { backupModule } from './ops/backup/module.ts'
import { AuditModule } from './audit/module.ts'
import { BackupDirectory } from './ops/backup/backup-directory.ts'
import { cardsModule } from './cards/module.ts'
import { CertificatesModule } from './certificates/module.ts'
import type { AuditRecorder } from './core/audit.ts'
import type { ScheduleTest } from './core/cron.ts'
import { Cursors } from './store/page.ts'
import type { Log, LogModule } from './core/log.ts'
import { memoryPool } from './core/memory-pool.ts'
import type { PlanLimits } from './core/planned.ts'
import type { Caller } from './core/scopes.ts'
import { WorkLimiter } from './net/work-limiter.ts'
import { fetchLimits } from './net/outside.ts'
import { Queue } from './queue/queue.ts'
import type { DoctorTest } from './ops/doctor/context.ts'
import { presentListeners } from './ops/doctor/checks/ports.ts'
import { doctorModule } from './ops/doctor/module.ts'
import type { RsaPair } from './domains/keys.ts'
import type { SendingRights } from './domains/sending.ts'
import { DomainsModule } from './domains/module.ts'
import { ReportHandler } from './domains/report-handler.ts'
import { eventMetrics } from './events/metrics.ts'
import { EventLog } from './events/log.ts'
import { metricsModule } from './ops/metrics/module.ts'
import { Aliases } from './identities/aliases.ts'
import { Identities } from './identities/identities.ts'
import { Cascade } from './identities/cascade.ts'
import { identitiesModule } from './identities/module.ts'
import { Jobs } from './jobs/jobs.ts'
import { jobsModule } from './jobs/module.ts'
import type { ExaminerOptions } from './mail/workers/examiner.ts'
import type { DirectoryTest } from './data-directory.ts'
import { MailModule } from './mail/module.ts'
import { mcpModule } from './mcp/module.ts'
import { SignedUrls } from './mail/attachments.ts'
import { statusModule } from './ops/status/module.ts'
import type { Reloaded } from './ops/status/model.ts'
import { BuiltSite } from './web/site.ts'
import type { Module, ModuleBasis } from './module.ts'
import { ObjectsModule } from './objects/module.ts'
import { realtimeModule } from './realtime/module.ts'
import { ReportingModule } from './reporting/module.ts'
import { RetentionModule } from './ops/retention/module.ts'
import type { TransportTest } from './outbound/transport/outbound-transport.ts'
import { OutboundModule } from './outbound/module.ts'
import { SmsModule } from './sms/module.ts'
import type { OperatorState } from './store/state.ts'
import { EventFeed } from './timeline/feed.ts'
import { Timeline } from './timeline/timeline.ts'
import { routes as timelineRoutes } from './timeline/routes.ts'
import { Waiting } from './timeline/wait.ts'
import { TokensModule } from './tokens/module.ts'
import { codeAt } from './totp/codes.ts'
import { loginsModule } from './logins/module.ts'
import { totpModule } from './totp/module.ts'
import { transferModule } from './ops/transfer/module.ts'
import type { Counting } from './trust/counting.ts'
import { trustModule } from './trust/module.ts'
import { type BoxFacts, guideRoutes } from './ops/guide/guide.ts'
import { trimEnd } from './core/text.ts'
import { DigestModule } from './policy/digest/module.ts'
import { PolicyModule } from './policy/module.ts'
import { Reputations } from './trust/reputations.ts'
import { webhooksModule } from './webhooks/module.ts'

/** Lets tests replace other servers and the machine. */
export interface Testing extends TransportTest, DirectoryTest {
  doctor?: DoctorTest
  examiner?: ExaminerOptions
  passwordCost?: PasswordCost | undefined
  rsaPair?: RsaPair
  schedule?: ScheduleTest
}

/** What the modules are made from, and what joins them to the box. */
interface Deps extends Omit<ModuleBasis, 'events' | 'cursors' | 'audit'> {
  state: OperatorState
  /** The addresses of the API. */
  httpAddresses: () => { plain?: AddressInfo; tls?: AddressInfo }
  /** The names of components that do not work now. */
  failing: () => Promise<string[]>
  /** Reads the settings again. */
  reread: () => Promise<Reloaded>
  testing?: Testing | undefined
}

/** Creates all modules with their dependencies, in the order of their start. Only this file wires modules. */
export function assemble(basis: Deps): {
  modules: Module[]
  people: AccountsModule
  queue: Queue
  events: EventLog
  audit: AuditRecorder
  mail: MailModule
  counting: Counting
  certificates: CertificatesModule
  plan: Plan
  identities: Identities
  sendingRights: () => SendingRights
} {
  const { config, log, clock, seal, database, metrics, types, state } = basis
  const logOf = (part: LogModule): Log => log.child({ part })
  const cursors = new Cursors(seal.key('cursors'))
  const limitsOf = (id: string): PlanLimits | undefined => state.data.accounts.find((one) => one.id === id)?.limits
  const plan = new Plan({ ...basis, limits: config.limits, limitsOf })
  const events = new EventLog(database, clock, plan)
  eventMetrics(metrics, events)
  const audit = new AuditModule({ ...basis, events, cursors, log: logOf('audit') })
  const common = { ...basis, events, cursors, plan, audit: audit.recorder }
  const keeping = new RetentionModule({ ...common, log: logOf('retention') })
  const { trash, quota } = keeping
  const queue = new Queue({ ...common, log: logOf('delivery'), kept: keeping.deliveries })
  const passwordCost = basis.testing?.passwordCost
  const people = new AccountsModule({ ...common, codeAt, queue, passwordCost, log: logOf('account') })
  const { keys, holders } = people
  const ours = new DomainsModule({ ...common, log: logOf('domains') })
  const { domains } = ours
  const sendingRights = (): SendingRights => domains.sendingRights()
  const identities = new Identities({ ...common, domains, domain: config.mail.domain, storageOf: quota.storageOf })
  const cascade = new Cascade({ ...common, log: logOf('retention') })
  keeping.serve(identities)
  const aliases = new Aliases({ ...common, domains, identities, log: logOf('retention') })
  const urls = new SignedUrls({ ...common, holders, key: seal.key('signed urls') })
  const certificates = new CertificatesModule({
    ...common,
    log: logOf('certificates'),
    policyHosts: () => domains.policyHosts(),
  })
  const objects = new ObjectsModule({ ...common, log: logOf('store') })
  const { raw } = objects
  const mail = new MailModule({
    ...common,
    raw,
    certificates: certificates.current,
    trash,
    quota,
    identities,
    hosted: domains,
    log: logOf('smtp'),
    submissionLog: logOf('submission'),
    urls,
  })
  mail.addSystemAddressHandler(new ReportHandler({ reports: ours.reports, log: logOf('domains') }))
  const admitted = (caller: Caller): Promise<boolean> => holders.stillAdmits(caller)
  // before mail and text messages, as the secrets of a deleted identity are erased first
  const totp = totpModule({ ...common, identities, cascade, admitted })
  const policy = new PolicyModule({ ...common, identities, cascade, keys, log: logOf('policy') })
  const cards = cardsModule({ ...common, identities, cascade, keeping, policy })
  const logins = loginsModule({ ...common, identities, cascade, policy })
  const fetches = new WorkLimiter(fetchLimits)
  const sending = new OutboundModule({
    ...common,
    policy,
    quota,
    keys,
    identities,
    cascade,
    domains,
    queue,
    mail,
    fetches,
    log: logOf('outbound'),
    returnKey: seal.key('return paths'),
  })
  const reporting = new ReportingModule({
    ...common,
    queue,
    sending,
    domains,
    outsideDial: basis.testing?.outsideDial,
    log: logOf('reporting'),
  })
  const digest = new DigestModule({
    ...common,
    queue,
    holds: policy.holds,
    sending,
    domains,
    exists: (id) => people.accounts.exists(id),
    log: logOf('policy'),
  })
  mail.inbox.onVerdict(reporting.received)
  sending.transport.onTls(reporting.connected)
  const sms = new SmsModule({ ...common, policy, trash, identities, cascade, queue, urls, fetches, log: logOf('sms') })
  identities.equip(sms.numbers)
  const readers = { clock, events, identities, emails: mail.emails, sms: sms.messages }
  const timeline = new Timeline({ ...readers, database, cursors, types })
  const waiting = new Waiting({ ...readers, database, admitted })
  const feed = new EventFeed({ ...common, identities, admitted })
  const agents = new Agents({ ...common, identities })
  const tokens = new TokensModule({ ...common, identities, agents, log: logOf('tokens') })
  const reputations = new Reputations({ ...common, identities, agents })
  tokens.equip(reputations)
  const { keys: signer, judge, resolver } = tokens
  const trust = trustModule({ ...common, identities, agents, reputations, signer, judge, resolver, log: logOf('trust') })
  const webhooks = webhooksModule({ ...common, keys, queue, log: logOf('webhooks') })
  const jobs = new Jobs({ ...common, keys, log: logOf('jobs') })
  identities.onRemove((tx, id) => jobs.leave(tx, id))
  cascade.add((tx, id) => trash.forgetSome(tx, id))
  cascade.add((tx, id) => jobs.leaveSome(tx, id))
  cascade.add((tx, id) => aliases.leaveSome(tx, id))
  const realtime = realtimeModule({ ...common, holders, identities, log: logOf('realtime'), tokenKey: seal.key('realtime') })
  const doctor = doctorModule({
    ...common,
    keyOf: (key) => idOfKey(database, key),
    listening: () => presentListeners(basis.httpAddresses(), mail),
    lookUpDomains: ours.domainStatus,
    probe: (domain, signal) => sending.transport.probe(domain, signal),
    isOurs: (domain) => domains.receives(domain),
    sendingRights,
    answerText: (kind, answer) => queue.answerText(kind, answer),
    carrier: sms.provider,
    objects: objects.store,
    reports: () => reporting.status(),
    newestBackup: async (settings) => {
      const last = await new BackupDirectory(settings).newest(state.data.box_id, clock.now())
      return last && { name: last.name, created_at: last.manifest.created_at, keys: last.manifest.keys === 'sealed' }
    },
    testing: basis.testing?.doctor,
    log: logOf('doctor'),
  })
  metrics.gauge('pillarbox_waiting_calls', 'Open calls of wait and of GET /v1/events that wait', (gauge) =>
    gauge.set(waiting.size + feed.size),
  )
  metrics.gauge(
    'pillarbox_held_bytes',
    'Bytes in memory that callers, servers and networks have to read or to send the rest of',
    (gauge) => gauge.set(memoryPool.bytes),
  )
  const transfer = transferModule({
    ...common,
    identities,
    jobs,
    mail: mail.archive,
    sms: sms.archive,
    urls,
    routes: () => modules.flatMap((module) => module.routes ?? []),
  })
  const facts = (): BoxFacts => ({
    url: trimEnd(basis.publicUrl(), '/'),
    domain: config.mail.domain,
    sending: sendingRights(),
    sms: sms.provider?.name,
    version: basis.version,
  })
  const site = new BuiltSite(join(import.meta.dirname, '..', 'dist', 'page'))
  const modules: Module[] = [
    // started first and stopped last, so that what the others do is counted and recorded
    metricsModule({ ...common, received: () => mail.received, log: logOf('figures') }),
    audit,
    reporting,
    people,
    identitiesModule(identities, aliases, cascade, logOf('account')),
    ours,
    certificates,
    objects,
    mail,
    policy,
    sending,
    digest,
    sms,
    totp,
    cards,
    logins,
    agentsModule({ ...common, agents, signer: tokens.keys }),
    tokens,
    trust,
    { name: 'timeline', routes: timelineRoutes(timeline, waiting, feed) },
    webhooks,
    realtime,
    doctor,
    transfer,
    backupModule({ ...common, jobs, log: logOf('backup') }),
    jobsModule(jobs, metrics),
    mcpModule({
      ...common,
      identities,
      keys,
      admitted,
      routes: () => modules.flatMap((module) => module.routes ?? []),
      outsideDial: basis.testing?.outsideDial,
      log: logOf('mcp'),
    }),
    keeping,
    // after those of identities and messages, which are more read
    { name: 'account events', events: [accountStopped, accountResumed, keyCreated, keyRotated, keyRevoked] },
    statusModule({ ...common, queue, sendingRights }),
    { name: 'guide', routes: guideRoutes(facts) },
    { name: 'page', site, start: () => site.read() },
  ]
  return {
    modules,
    people,
    queue,
    events,
    audit: audit.recorder,
    mail,
    counting: trust.counting,
    certificates,
    plan,
    identities,
    sendingRights,
  }
}
