import { join } from 'node:path'
import type { Accounts } from './accounts/accounts.ts'
import type { AccountsModule } from './accounts/module.ts'
import { assemble, type Testing } from './assembly.ts'
import { changed, type Config, ConfigError, controlSocket } from './config.ts'
import { concerns } from './config/problems.ts'
import { type AuditRecorder, byOperator } from './core/audit.ts'
import { type Clock, systemClock } from './core/clock.ts'
import { type CronJob, Schedule } from './core/cron.ts'
import { conflict, Fault } from './core/fault.ts'
import { type Log, setLevels } from './core/log.ts'
import type { Step } from './core/seal/master-key.ts'
import { Metrics } from './core/metrics.ts'
import type { SealedColumn } from './core/seal/seal.ts'
import type { Queue } from './queue/queue.ts'
import { EventTypes } from './events/catalogue.ts'
import type { EventLog } from './events/log.ts'
import type { EventType } from './events/model.ts'
import { type DataDirectory, openDirectory } from './data-directory.ts'
import type { ServedCertificate } from './http/server/tls-acceptor.ts'
import { Idempotency, sealedAnswers } from './http/idempotency.ts'
import type { AnyRoute } from './http/route.ts'
import { HttpServer, type HttpSettings } from './http/server/server.ts'
import type { MailModule } from './mail/module.ts'
import type { Reloaded } from './ops/status/model.ts'
import type { Module } from './module.ts'
import type { RotationResult } from './store/keyring.ts'
import { WriteProbe } from './store/probe.ts'
import { forgetFormer } from './store/rewrite.ts'
import type { Counting } from './trust/counting.ts'
import type { SendingRights } from './domains/sending.ts'
import { version } from './version.ts'

interface Opened {
  config: Config
  log: Log
  clock: Clock
  testing?: Testing | undefined
  load?: Load | undefined
  metrics: Metrics
  exclusive?: boolean
}

/** Reads the settings again from their sources; throws ConfigError. */
type Load = () => Promise<Config>

/** The whole box: opened over a data directory, then started, reloaded and stopped, by main and by tests alike. */
export class App {
  readonly metrics: Metrics
  readonly #log: Log
  readonly #load: Load | undefined
  readonly #exclusive: boolean
  readonly #directory: DataDirectory
  readonly #probe: WriteProbe
  readonly #schedule: Schedule
  readonly #accounts: AccountsModule
  readonly #modules: Module[]
  readonly #queue: Queue
  readonly #events: EventLog
  readonly #audit: AuditRecorder
  readonly #mail: MailModule
  readonly #counting: Counting
  readonly #http: HttpServer
  readonly #idempotency: Idempotency
  /** Where mail from the box's own domain can be sent. */
  readonly sendingRights: () => SendingRights
  readonly #certificates: ServedCertificate
  readonly #account: string
  readonly #types = new EventTypes()
  /** The settings of the start, for those that need a restart to change. */
  readonly #startConfig: Config
  #config: Config
  #started = false
  #modulesStopped = false
  #stopping: Promise<void> | undefined

  /**
   * Opens the data directory: locked, checked, migrated. Throws a sentence when it is in use, damaged or newer than this program; what is
   * there is never written over.
   */
  static async open(config: Config, log: Log, clock: Clock = systemClock, testing?: Testing, load?: Load): Promise<App> {
    const metrics = new Metrics()
    const opened: Opened = { config, log, clock, testing, load, metrics }
    return new App(opened, await openDirectory(opened))
  }

  /** The same, where no other box has the database open: none can open it meanwhile. */
  static async openExclusively(config: Config, log: Log, clock: Clock = systemClock, testing?: Testing): Promise<App> {
    const opened: Opened = { config, log, clock, testing, metrics: new Metrics(), exclusive: true }
    return new App(opened, await openDirectory(opened))
  }

  private constructor({ config, log, clock, testing, load, metrics, exclusive = false }: Opened, directory: DataDirectory) {
    const { keyring, state, database, space } = directory
    this.metrics = metrics
    this.#startConfig = config
    this.#config = config
    this.#log = log
    this.#load = load
    this.#exclusive = exclusive
    this.#directory = directory
    this.#probe = new WriteProbe(database, clock)
    this.#account = state.data.accounts[0]!.id
    const leads = database.placesEvents ? (job: string) => database.run.leads(`job ${job}`) : undefined
    this.#schedule = new Schedule(log.child({ part: 'cron' }), clock, metrics, testing?.schedule, leads)
    const { people, queue, events, audit, mail, counting, certificates, plan, identities, modules, sendingRights } = assemble({
      config,
      log,
      clock,
      seal: keyring.seal,
      database,
      space,
      version,
      metrics,
      types: this.#types,
      account: this.#account,
      state,
      testing,
      publicUrl: () => this.publicUrl,
      httpAddresses: () => this.httpAddresses,
      failing: () => this.#ready(),
      reread: () => this.reread(),
    })
    this.#accounts = people
    this.#queue = queue
    this.#events = events
    this.#audit = audit
    this.#mail = mail
    this.#counting = counting
    this.#modules = modules
    for (const module of this.#modules) {
      this.#types.add(module.events ?? [])
      for (const courier of module.couriers ?? []) this.#queue.add(courier)
    }
    this.#certificates = { certificate: () => certificates.current.api, byHostname: certificates.current.named }
    const idempotency = new Idempotency({ database, seal: keyring.seal, clock, storage: plan })
    identities.onRemove((tx, id) => idempotency.forget(tx, id))
    this.#idempotency = idempotency
    this.sendingRights = sendingRights
    this.#http = new HttpServer({
      settings: httpSettings(config, this.#certificates),
      challenge: certificates.challenge,
      routes: this.routes,
      endpoints: this.#modules.flatMap((module) => module.endpoints ?? []),
      upgrades: this.#modules.flatMap((module) => module.upgrades ?? []),
      site: this.#modules.find((module) => module.site)?.site,
      origin: () => this.publicUrl,
      authenticate: (key) => people.keys.authenticate(key),
      session: (token) => people.sessions.authenticate(token),
      database,
      idempotency,
      audit,
      log: log.child({ part: 'http' }),
      metrics,
      ready: () => this.#ready(),
      hasSpace: () => !space.low(),
      operator: this.#account,
      exists: (id) => people.accounts.exists(id),
      version,
      clock,
    })
    certificates.current.follow(() => this.#http.renew())
    metrics.collectProcess()
  }

  /** Every endpoint, as declared. */
  get routes(): AnyRoute[] {
    return this.#modules.flatMap((module) => module.routes ?? [])
  }

  /** Every event type, as declared. */
  get eventTypes(): EventType[] {
    return this.#types.all()
  }

  /** All scheduled jobs, as declared. */
  get jobs(): CronJob[] {
    const sweep: CronJob = {
      name: 'sweep-idempotency',
      schedule: '17 * * * *',
      run: async () => void (await this.#idempotency.sweep()),
    }
    return [...this.#modules.flatMap((module) => module.jobs ?? []), ...this.#queue.jobs, sweep]
  }

  /** Every column that is sealed under the master key, as declared. */
  get sealed(): SealedColumn[] {
    return [sealedAnswers, ...this.#modules.flatMap((module) => module.sealed ?? [])]
  }

  /** The accounts of the box, for the operator. */
  get accounts(): Accounts {
    return this.#accounts.accounts
  }

  /** The URL of the API; a port chosen by the system is filled in once it is known. */
  get publicUrl(): string {
    const url = this.#startConfig.public_url
    const { plain, tls } = this.#http.addresses
    const port = (this.#config.http.tls ? tls : plain)?.port
    return url.endsWith(':0') && port !== undefined ? url.replace(/:0$/, `:${port}`) : url
  }

  /** A new link by which the operator sets their first password; null once there is one. */
  async setupLink(): Promise<string | null> {
    const { password_set } = await this.accounts.of(this.#account)
    return password_set ? null : (await this.#accounts.setup.invite(this.#account)).url
  }

  get smtpAddresses(): { host: string; port: number }[] {
    return this.#mail.addresses
  }

  /** The addresses for submission: with STARTTLS, and with implicit TLS; empty unless configured. */
  get submissionAddresses(): MailModule['submissionAddresses'] {
    return this.#mail.submissionAddresses
  }

  get httpAddresses(): HttpServer['addresses'] {
    return this.#http.addresses
  }

  /** Starts all modules. Returns the first API key until `firstKeyShown` was called. Throws when a port is taken. */
  async start(): Promise<{ firstKey: string | null }> {
    await this.#directory.space.start()
    await this.#events.start(this.#log.child({ part: 'store' }))
    for (const module of this.#modules) await module.start?.()
    await this.#queue.start()
    await this.#http.start()
    void this.#idempotency.resume().catch(() => undefined)
    for (const job of this.jobs) this.#schedule.add(job)
    // only after every port is bound: a key that is never printed would be lost
    const firstKey = await this.#firstKey()
    this.#started = true
    this.#record('box.started', { version })
    const { explanation: sending } = this.sendingRights()
    this.#log.info({ version, api: this.publicUrl, smtp: this.smtpAddresses, data: this.#config.data_dir, sending }, 'started')
    return { firstKey }
  }

  /** Records that the operator has seen the first key, so that no later start makes another. */
  async firstKeyShown(): Promise<void> {
    await this.#directory.state.update((document) => {
      document.first_key_shown = true
    })
  }

  /** Opens only the control socket, for commands on a box that is open and not started. */
  async attend(): Promise<void> {
    for (const module of this.#modules) await module.attend?.()
    await this.#http.startControlSocket()
  }

  /**
   * Rotates the master key of a box that is open and not started; it must be stopped then. `onStep` is called after each step. Throws Fault conflict when
   * other boxes may have the database open.
   */
  async rotateMasterKey(onStep?: (step: Step) => void): Promise<RotationResult> {
    if (this.#directory.database.several && !this.#exclusive)
      throw conflict('Other boxes may use the master key: open the box exclusively.')
    const rotated = await this.#directory.keyring.rotate(this.sealed, onStep)
    this.#record('master_key.rotated', { values: rotated.values })
    await this.#stopModules()
    await this.#directory.database.close()
    // a server overwrites the former rows when it vacuums
    if (this.#directory.database.engine === 'sqlite') forgetFormer(join(this.#startConfig.data_dir, 'pillarbox.db'))
    return rotated
  }

  /** Recounts reputations from the log, for a box that is open and not started; it must be stopped then. */
  recountReputations(): ReturnType<Counting['recount']> {
    return this.#counting.recount()
  }

  /** Reads and applies the settings again. When they are invalid nothing changes, the error is logged, and a Fault is thrown. */
  async reread(): Promise<Reloaded> {
    if (!this.#started || !this.#load) throw conflict('The box is not running: it reads its settings when it starts.')
    try {
      const reloaded = await this.reload(await this.#load())
      const { restart } = reloaded
      if (restart.length > 0) this.#log.warn({ settings: restart }, 'changed settings require a restart')
      return reloaded
    } catch (error) {
      const problem = (error as Error).message
      const isUnknown = (section: string): boolean => !(error instanceof ConfigError) || concerns(error.problems, section)
      const effects = this.#modules.flatMap((module) => module.refuseReload?.(isUnknown) ?? [])
      this.#log.error(
        { problem, ...(effects.length === 0 ? {} : { effects }) },
        'settings could not be reloaded; the former ones remain in effect',
      )
      if (!(error instanceof ConfigError)) throw error
      const message = [problem, 'The former settings remain in effect.', ...effects].join('\n')
      throw new Fault('invalid_request', message, { code: 'settings_refused' })
    }
  }

  /** Applies the settings that can change while running, and state.json. */
  async reload(config: Config): Promise<Reloaded> {
    await this.#directory.state.reread()
    const { reloadable } = changed(this.#config, config)
    const { restart } = changed(this.#startConfig, config)
    this.#config = config
    setLevels(this.#log, config.log)
    await this.#http.reload(httpSettings(config, this.#certificates))
    for (const module of this.#modules) await module.reload?.(config)
    this.#record('settings.changed', { settings: reloadable, restart })
    this.#log.info({ reloadable, restart }, 'settings reloaded')
    return { reloaded: reloadable, restart }
  }

  /** Records what is done to the box itself, by no call. */
  #record(action: string, detail: Record<string, unknown>): void {
    this.#audit.collect({ ...byOperator(this.#account, null), action, target: null, identity_id: null, detail })
  }

  /** Resolves when the background work that runs now has ended, which may have begun more; undefined when there is none. */
  get work(): Promise<unknown> | undefined {
    const work = [this.#events, this.#queue, ...this.#modules].flatMap((part) => part.work ?? [])
    return work.length === 0 ? undefined : Promise.all(work)
  }

  /** Closes listeners, finishes running work, and closes the data directory. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#started = false
    await this.#schedule.stop()
    await this.#http.stop()
    await this.#queue.stop()
    await this.#stopModules()
    await this.#events.stop()
    await this.#directory.space.stop()
    await this.#directory.close()
    this.#log.info('stopped')
  }

  /** Each once. */
  async #stopModules(): Promise<void> {
    const modules = this.#modulesStopped ? [] : this.#modules.toReversed()
    this.#modulesStopped = true
    for (const module of modules) {
      try {
        await module.stop?.()
      } catch (error) {
        // a failure of one module must not keep the store from being closed
        this.#log.error({ part: module.name, err: error }, 'a module failed to stop')
      }
    }
  }

  async #firstKey(): Promise<string | null> {
    if (this.#directory.state.data.first_key_shown) return null
    const key = await this.#accounts.keys.first(this.#account, this.#config.bootstrap_key)
    if (key === null || this.#config.bootstrap_key !== undefined) await this.firstKeyShown()
    return key
  }

  async #ready(): Promise<string[]> {
    const failing: string[] = []
    if (!this.#started || this.#http.addresses.plain === undefined) failing.push('http')
    if (this.#mail.addresses.length === 0) failing.push('smtp')
    const store = await this.#probe.check()
    if (this.#directory.space.low() || store === 'full') failing.push('space')
    if (store === 'failing') failing.push('store')
    return failing
  }
}

function httpSettings(config: Config, certificates: ServedCertificate): HttpSettings {
  const { http, metrics } = config
  return {
    ...http,
    tls: http.tls && { ...certificates, listen: http.tls.listen },
    public_url: config.public_url,
    account_rate_limit: http.account_rate_limit ?? http.rate_limit * 100,
    // a local proxy, and programs beside the box, may hold as many as they like
    uncounted: [...http.trusted_proxies, '127.0.0.0/8', '::1/128'],
    control: controlSocket(config),
    metrics: { listen: metrics.listen, token: metrics.token },
  }
}
