import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Keys } from './account/keys.ts'
import { assemble } from './assembly.ts'
import type { Config } from './config.ts'
import { changed } from './config.ts'
import { systemClock } from './core/clock.ts'
import type { Clock } from './core/clock.ts'
import { Schedule } from './core/cron.ts'
import type { Log } from './core/log.ts'
import { MasterKey } from './core/master-key.ts'
import type { Step } from './core/master-key.ts'
import { Metrics } from './core/metrics.ts'
import type { SealedColumn } from './core/seal.ts'
import type { Queue } from './delivery/queue.ts'
import { EventTypes } from './events/catalogue.ts'
import type { EventType } from './events/model.ts'
import { httpSettings } from './http-settings.ts'
import type { Shown } from './http/listener.ts'
import { sealedAnswers } from './http/idempotency.ts'
import type { AnyRoute } from './http/route.ts'
import { HttpServer } from './http/server.ts'
import { freshState } from './first-start.ts'
import type { MailPart } from './mail/part.ts'
import type { Part } from './part.ts'
import type { CarriageTest } from './sending/carriage.ts'
import { Keyring } from './store/keyring.ts'
import type { Rotated } from './store/keyring.ts'
import { Lock } from './store/lock.ts'
import { prepare } from './store/migrate.ts'
import { Probe } from './store/probe.ts'
import { Space } from './store/space.ts'
import { SqliteDatabase } from './store/sqlite.ts'
import { StateFile } from './store/state.ts'

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

export const version = manifest.version

interface Opened {
  config: Config
  log: Log
  clock: Clock
  testing?: CarriageTest | undefined
}

/** The whole box: opened over one data directory, then started, reloaded and stopped. What main runs is what the tests run. */
export class App {
  readonly metrics = new Metrics()
  readonly #log: Log
  readonly #lock: Lock
  readonly #database: SqliteDatabase
  readonly #keyring: Keyring
  readonly #space: Space
  readonly #probe: Probe
  readonly #schedule: Schedule
  readonly #keys: Keys
  readonly #parts: Part[]
  readonly #queue: Queue
  readonly #mail: MailPart
  readonly #http: HttpServer
  readonly #shown: Shown
  readonly #account: string
  readonly #state: StateFile
  readonly #types = new EventTypes()
  /** The settings of the start; what of them cannot change while running stays so. */
  readonly #begun: Config
  #config: Config
  #started = false
  #stopping: Promise<void> | undefined

  /**
   * Opens the data directory: locked, checked, migrated. Throws a sentence when it is in use, damaged or newer than this program; what is
   * there is never written over.
   */
  static async open(config: Config, log: Log, clock: Clock = systemClock, testing?: CarriageTest): Promise<App> {
    mkdirSync(config.data_dir, { recursive: true, mode: 0o700 })
    const lock = new Lock(config.data_dir)
    let database: SqliteDatabase | undefined
    try {
      const file = join(config.data_dir, 'pillarbox.db')
      const state = await StateFile.open(join(config.data_dir, 'state.json'), () => freshState(config, clock, file))
      const key = new MasterKey(config.keys_dir, config.master_key_file)
      key.read(state.data.database_created)
      prepare(file, state.data.database_created)
      if (!state.data.database_created) {
        await state.update((document) => {
          document.database_created = true
        })
      }
      database = await SqliteDatabase.open(file, log.child({ part: 'store' }))
      const keyring = await Keyring.open(database, key)
      return new App({ config, log, clock, testing }, lock, keyring, state, database, new Space(config.data_dir, config.min_free))
    } catch (error) {
      await database?.close()
      lock.release()
      throw error
    }
  }

  private constructor(
    { config, log, clock, testing }: Opened,
    lock: Lock,
    keyring: Keyring,
    state: StateFile,
    database: SqliteDatabase,
    space: Space,
  ) {
    this.#begun = config
    this.#config = config
    this.#log = log
    this.#lock = lock
    this.#database = database
    this.#keyring = keyring
    this.#space = space
    this.#probe = new Probe(database, clock)
    this.#state = state
    this.#account = state.data.accounts[0]!.id
    this.#schedule = new Schedule(log.child({ part: 'cron' }))
    const { keys, queue, mail, certificates, parts } = assemble({
      config,
      log,
      clock,
      seal: keyring.seal,
      database,
      space,
      version,
      metrics: this.metrics,
      types: this.#types,
      account: this.#account,
      testing,
      publicUrl: () => this.publicUrl,
    })
    this.#keys = keys
    this.#queue = queue
    this.#mail = mail
    this.#parts = parts
    for (const part of this.#parts) {
      this.#types.add(part.events ?? [])
      for (const courier of part.couriers ?? []) this.#queue.add(courier)
    }
    this.#shown = { certificate: () => certificates.shown.api, named: certificates.shown.named }
    this.#http = new HttpServer({
      settings: httpSettings(config, this.#shown),
      challenge: certificates.challenge,
      routes: this.routes,
      upgrades: this.#parts.flatMap((part) => part.upgrades ?? []),
      origin: () => this.publicUrl,
      authenticate: (key) => this.#keys.authenticate(key),
      database,
      seal: keyring.seal,
      log: log.child({ part: 'http' }),
      metrics: this.metrics,
      ready: () => this.#ready(),
      roomy: () => !space.low(),
      operator: this.#account,
      version,
      clock,
    })
    certificates.shown.follow(() => this.#http.renew())
    this.metrics.collectProcess()
  }

  /** Every endpoint, as declared. */
  get routes(): AnyRoute[] {
    return this.#parts.flatMap((part) => part.routes ?? [])
  }

  /** Every event type, as declared. */
  get eventTypes(): EventType[] {
    return this.#types.all()
  }

  /** Every column that is sealed under the master key, as declared. */
  get sealed(): SealedColumn[] {
    return [sealedAnswers, ...this.#parts.flatMap((part) => part.sealed ?? [])]
  }

  /** Where the API is reached; a port chosen by the system is filled in once it is known. */
  get publicUrl(): string {
    const url = this.#begun.public_url
    const { plain, tls } = this.#http.addresses
    const port = (this.#config.http.tls ? tls : plain)?.port
    return url.endsWith(':0') && port !== undefined ? url.replace(/:0$/, `:${port}`) : url
  }

  get smtpAddresses(): { host: string; port: number }[] {
    return this.#mail.addresses
  }

  /** Where programs hand in mail: with STARTTLS, and with TLS from the first octet; empty unless configured. */
  get submissionAddresses(): MailPart['submissionAddresses'] {
    return this.#mail.submissionAddresses
  }

  get httpAddresses(): HttpServer['addresses'] {
    return this.#http.addresses
  }

  /** Starts every part; answers the first API key until `firstKeyShown` was told that somebody has it. Throws when a port is taken. */
  async start(): Promise<{ firstKey: string | null }> {
    await this.#space.start()
    for (const part of this.#parts) {
      await part.start?.()
      for (const job of part.jobs ?? []) this.#schedule.add(job)
    }
    await this.#queue.start()
    for (const job of this.#queue.jobs) this.#schedule.add(job)
    await this.#http.start()
    this.#schedule.add({ name: 'sweep-idempotency', schedule: '17 * * * *', run: async () => void (await this.#http.sweep()) })
    // only now, with every port bound: a key that is never printed would be lost
    const firstKey = await this.#firstKey()
    this.#started = true
    this.#log.info({ version, api: this.publicUrl, smtp: this.smtpAddresses, data: this.#config.data_dir }, 'started')
    return { firstKey }
  }

  /** Whoever started the box has seen the first key: no later start makes another. */
  async firstKeyShown(): Promise<void> {
    await this.#state.update((document) => {
      document.first_key_shown = true
    })
  }

  /** Answers the operator on the box's own socket without starting anything else: of a box that is open and never started. */
  async attend(): Promise<void> {
    await this.#http.attend()
  }

  /** Of a box that is open and never started; it must be stopped then. `told` hears of each step. */
  rotateMasterKey(told?: (step: Step) => void): Promise<Rotated> {
    return this.#keyring.rotate(this.sealed, told)
  }

  /** Takes over what can change while running; answers the settings that need a restart. */
  async reload(config: Config): Promise<{ restart: string[] }> {
    const { reloadable } = changed(this.#config, config)
    const { restart } = changed(this.#begun, config)
    this.#config = config
    this.#log.level = config.log.level
    await this.#http.reload(httpSettings(config, this.#shown))
    for (const part of this.#parts) await part.reload?.(config)
    this.#log.info({ reloadable, restart }, 'settings were read again')
    return { restart }
  }

  /** Listeners close, work in hand finishes, nothing is lost. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#started = false
    await this.#schedule.stop()
    await this.#http.stop()
    await this.#queue.stop()
    for (const part of this.#parts.toReversed()) {
      try {
        await part.stop?.()
      } catch (error) {
        // what one part could not finish must not keep the store from being closed
        this.#log.error({ part: part.name, err: error }, 'a part did not stop as it should')
      }
    }
    this.#space.stop()
    await this.#database.close()
    this.#lock.release()
    this.#log.info('stopped')
  }

  async #firstKey(): Promise<string | null> {
    if (this.#state.data.first_key_shown) return null
    const key = await this.#keys.first(this.#account, this.#config.bootstrap_key)
    if (key === null || this.#config.bootstrap_key !== undefined) await this.firstKeyShown()
    return key
  }

  async #ready(): Promise<string[]> {
    const failing: string[] = []
    if (!this.#started || this.#http.addresses.plain === undefined) failing.push('http')
    if (this.#mail.addresses.length === 0) failing.push('smtp')
    if (this.#space.low()) failing.push('space')
    if (!(await this.#probe.sound())) failing.push('store')
    return failing
  }
}
