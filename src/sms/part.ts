import type { Plan } from '../account/plan.ts'
import type { Config } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import type { Job } from '../core/cron.ts'
import type { Cursors } from '../core/cursor.ts'
import type { Log } from '../core/log.ts'
import type { Metrics } from '../core/metrics.ts'
import type { Courier } from '../delivery/courier.ts'
import { Outside } from '../delivery/outside.ts'
import type { OutsideSettings } from '../delivery/outside.ts'
import type { FetchRoom } from '../delivery/fetch-room.ts'
import type { Queue } from '../delivery/queue.ts'
import { resolver } from '../delivery/resolve.ts'
import type { EventLog } from '../events/log.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Identities } from '../identities/identities.ts'
import { identityDeleted } from '../identities/model.ts'
import type { SignedUrls } from '../mail/signed-urls.ts'
import type { Part } from '../part.ts'
import type { Trash } from '../retention/trash.ts'
import { sql } from '../store/database.ts'
import type { Database } from '../store/database.ts'
import { SmsArchive } from './archive.ts'
import { Arrears } from './arrears.ts'
import { callbacks } from './callbacks.ts'
import { SmsCourier } from './courier.ts'
import { Inbound } from './inbound.ts'
import { MediaCourier, MediaShelf } from './media.ts'
import { Messages } from './messages.ts'
import { phoneProvisioned, phoneReleased, smsDelivered, smsFailed, smsReceived, smsSent } from './model.ts'
import { Numbers } from './numbers.ts'
import type { SmsProvider } from './provider.ts'
import { chosen } from './providers/choice.ts'
import { ReleaseCourier } from './release.ts'
import { routes } from './routes.ts'

interface Needs {
  database: Database
  events: EventLog
  clock: Clock
  cursors: Cursors
  queue: Queue
  plan: Plan
  trash: Trash
  identities: Identities
  config: Config
  log: Log
  metrics: Metrics
  urls: SignedUrls
  fetches: FetchRoom
  codesIn: (subject: string, text: string) => string[]
  publicUrl: () => string
}

/** Text messages: numbers, what comes in and goes out, and whoever carries it. */
export class SmsPart implements Part {
  readonly name = 'sms'
  readonly events = [smsReceived, smsSent, smsDelivered, smsFailed, phoneProvisioned, phoneReleased]
  readonly routes: AnyRoute[]
  readonly couriers: Courier[]
  readonly jobs: Job[]
  readonly messages: Messages
  readonly numbers: Numbers
  readonly archive: SmsArchive
  readonly #needs: Needs
  readonly #provider: SmsProvider | undefined
  readonly #outside: Outside
  readonly #arrears: Arrears
  #settings: Config['sms']
  #beginning: Promise<unknown> | undefined
  #unfollow: (() => Promise<void>) | undefined

  constructor(needs: Needs) {
    this.#needs = needs
    this.#settings = needs.config.sms
    this.#outside = new Outside(outsideSettings(needs.config))
    const provider = this.#choose(() => inbound)
    this.#provider = provider
    this.numbers = new Numbers({ ...needs, provider, country: () => this.#settings.country })
    this.archive = new SmsArchive(needs)
    const common = { ...needs, provider, numbers: this.numbers }
    this.messages = new Messages({ ...common, rules: () => this.#settings })
    const inbound = new Inbound({ ...common, mediaLimit: () => this.#settings.media_limit })
    this.#arrears = new Arrears({ ...common, inbound })
    const media = new MediaShelf({ ...common, messages: this.messages })
    this.routes = [...routes({ ...common, messages: this.messages, media }), ...callbacks({ ...common, inbound })]
    this.couriers = [new SmsCourier(common), new ReleaseCourier(common), new MediaCourier(common)]
    this.jobs = [
      { name: 'reconcile-numbers', schedule: '41 * * * *', run: () => this.#reconcile() },
      { name: 'fetch-missed-sms', schedule: '26 * * * *', run: () => this.#collect() },
      { name: 'forget-sms', schedule: '53 3 * * *', run: () => inbound.forget() },
      { name: 'subscribe-to-sms', schedule: '11 * * * *', run: () => this.#subscribe() },
    ]
  }

  /** Who carries text messages; undefined for nobody. */
  get provider(): SmsProvider | undefined {
    return this.#provider
  }

  async start(): Promise<void> {
    const { events, log } = this.#needs
    this.#unfollow = events.follow(
      'sms',
      async (tx, batch) => {
        for (const { identity_id } of batch) {
          if (identity_id === null) continue
          await this.messages.cancel(tx, identity_id)
          await this.numbers.abandon(tx, identity_id)
        }
      },
      log,
      { types: [identityDeleted.name] },
    )
    await this.#provider?.start?.()
    this.#introduce()
    // what the provider says may take long, and must not keep mail waiting
    this.#beginning = Promise.all([this.#reconcile().then(() => this.#collect()), this.#subscribe()])
  }

  async stop(): Promise<void> {
    await this.#unfollow?.()
    await this.#beginning
    await this.#provider?.stop?.()
    await this.#outside.close()
  }

  reload(config: Config): void {
    // who carries messages needs a restart, and is what it was
    this.#settings = { ...config.sms, provider: this.#settings.provider }
    this.#outside.reload(outsideSettings(config))
  }

  async #reconcile(): Promise<void> {
    try {
      await this.numbers.reconcile()
    } catch (error) {
      this.#needs.log.error(
        { err: error },
        'the numbers of the provider could not be compared with ours; tried again within the hour',
      )
    }
  }

  async #collect(): Promise<void> {
    try {
      await this.#arrears.collect()
    } catch (error) {
      this.#needs.log.warn({ err: error }, 'it could not be seen whether text messages were missed; tried again within the hour')
    }
  }

  async #subscribe(): Promise<void> {
    try {
      await this.#provider?.subscribe?.()
    } catch (error) {
      this.#needs.log.warn({ err: error }, 'the SMS provider could not be told where to report; tried again within the hour')
    }
  }

  #introduce(): void {
    const { log } = this.#needs
    if (!this.#provider) return
    const { name, capabilities } = this.#provider
    log.info({ provider: name, ...capabilities }, 'text messages are carried')
    if (name === 'twilio') {
      log.warn(
        { provider: name },
        'Twilio redacts one-time codes that its numbers receive (error 30038); a SIM card behind sms.provider android receives them',
      )
    }
  }

  #choose(inbound: () => Inbound): SmsProvider | undefined {
    const { database } = this.#needs
    return chosen({
      ...this.#needs,
      settings: () => this.#settings,
      outside: this.#outside,
      inbound,
      isTaken: async (number) => (await database.get(sql`SELECT 1 FROM phone_numbers WHERE number = ${number}`)) !== undefined,
    })
  }
}

/** Octets that an answer may have beside a picture. */
const heads = 512 * 1024

function outsideSettings({ sms, dns }: Config): OutsideSettings {
  const { allow_networks, media_limit } = sms
  return { allow_networks, allow_http: false, resolve: resolver(dns), largest: media_limit + heads }
}
