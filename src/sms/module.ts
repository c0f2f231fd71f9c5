import type { Plan } from '../accounts/plan.ts'
import type { Config } from '../config.ts'
import type { CronJob } from '../core/cron.ts'
import type { Courier } from '../queue/courier.ts'
import { Outside, type OutsideSettings } from '../net/outside.ts'
import type { WorkLimiter } from '../net/work-limiter.ts'
import type { Queue } from '../queue/queue.ts'
import { resolver } from '../net/resolve.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Cascade } from '../identities/cascade.ts'
import type { Identities } from '../identities/identities.ts'
import type { SignedUrls } from '../mail/attachments.ts'
import type { ModuleBasis, Module } from '../module.ts'
import type { Trash } from '../ops/retention/trash.ts'
import type { PolicyModule } from '../policy/module.ts'
import { sql } from '../store/database.ts'
import { SmsArchive } from './archive.ts'
import { MissedMessages } from './missed-messages.ts'
import { callbacks } from './callbacks.ts'
import { SmsCourier } from './courier.ts'
import { HeldMessages } from './held-sms.ts'
import { Inbound } from './inbound.ts'
import { MediaCourier, MediaStore } from './media.ts'
import { Messages } from './messages.ts'
import {
  phoneProvisioned,
  phoneReleased,
  smsApproved,
  smsDelivered,
  smsExpired,
  smsFailed,
  smsHeld,
  smsReceived,
  smsRejected,
  smsSent,
} from './model.ts'
import { Numbers } from './numbers.ts'
import type { SmsProvider } from './provider.ts'
import { chosen } from './providers/create-provider.ts'
import { ReleaseCourier } from './release.ts'
import { routes } from './routes.ts'

interface Deps extends ModuleBasis {
  queue: Queue
  plan: Plan
  trash: Trash
  identities: Identities
  cascade: Cascade
  urls: SignedUrls
  fetches: WorkLimiter
  policy: PolicyModule
}

/** Text messages: numbers, sending and receiving, and the provider. */
export class SmsModule implements Module {
  readonly name = 'sms'
  readonly events = [
    smsReceived,
    smsSent,
    smsDelivered,
    smsFailed,
    smsHeld,
    smsApproved,
    smsRejected,
    smsExpired,
    phoneProvisioned,
    phoneReleased,
  ]
  readonly routes: AnyRoute[]
  readonly couriers: Courier[]
  readonly jobs: CronJob[]
  readonly messages: Messages
  readonly numbers: Numbers
  readonly archive: SmsArchive
  readonly #deps: Deps
  readonly #provider: SmsProvider | undefined
  readonly #outside: Outside
  readonly #missedMessages: MissedMessages
  #settings: Config['sms']
  #beginning: Promise<unknown> | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#settings = deps.config.sms
    this.#outside = new Outside(outsideSettings(deps.config))
    const provider = this.#choose(() => inbound)
    this.#provider = provider
    this.numbers = new Numbers({ ...deps, provider, country: () => this.#settings.country })
    this.archive = new SmsArchive(deps)
    const { policyCheck, holds } = deps.policy
    const common = { ...deps, provider, numbers: this.numbers, policyCheck, holds }
    this.messages = new Messages({ ...common, rules: () => this.#settings })
    holds.serve('sms', new HeldMessages(common))
    deps.identities.onRemove((tx, identityId) => this.numbers.abandon(tx, identityId))
    deps.identities.onResume((tx, identityId) => this.messages.resume(tx, identityId))
    deps.cascade.add((tx, identityId, after) => this.messages.cancel(tx, identityId, after))
    const inbound = new Inbound({ ...common, mediaLimit: () => this.#settings.media_limit })
    this.#missedMessages = new MissedMessages({ ...common, inbound })
    const media = new MediaStore({ ...common, messages: this.messages })
    this.routes = [...routes({ ...common, messages: this.messages, media }), ...callbacks({ ...common, inbound })]
    this.couriers = [new SmsCourier(common), new ReleaseCourier(common), new MediaCourier(common)]
    this.jobs = [
      { name: 'reconcile-numbers', schedule: '41 * * * *', run: () => this.#reconcile() },
      { name: 'fetch-missed-sms', schedule: '26 * * * *', run: () => this.#collect() },
      { name: 'forget-sms', schedule: '53 3 * * *', run: () => inbound.forget() },
      { name: 'subscribe-to-sms', schedule: '11 * * * *', run: () => this.#subscribe() },
    ]
  }

  /** The configured provider; undefined without one. */
  get provider(): SmsProvider | undefined {
    return this.#provider
  }

  async start(): Promise<void> {
    await this.#provider?.start?.()
    this.#introduce()
    // provider calls may be slow and must not delay mail
    this.#beginning = Promise.all([this.#reconcile().then(() => this.#collect()), this.#subscribe()]).finally(
      () => (this.#beginning = undefined),
    )
  }

  get work(): Promise<unknown> | undefined {
    return this.#beginning
  }

  async stop(): Promise<void> {
    await this.#beginning
    await this.#provider?.stop?.()
    await this.#outside.close()
  }

  reload(config: Config): void {
    // a change of the provider needs a restart
    this.#settings = { ...config.sms, provider: this.#settings.provider }
    this.#outside.reload(outsideSettings(config))
  }

  async #reconcile(): Promise<void> {
    try {
      await this.numbers.reconcile()
    } catch (error) {
      this.#deps.log.error(
        { err: error },
        'phone numbers could not be compared with those of the provider; retried within the hour',
      )
    }
  }

  async #collect(): Promise<void> {
    try {
      await this.#missedMessages.collect()
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'check for missed text messages failed; retried within the hour')
    }
  }

  async #subscribe(): Promise<void> {
    try {
      await this.#provider?.subscribe?.()
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'the callbacks of the SMS provider could not be registered; retried within the hour')
    }
  }

  #introduce(): void {
    const { log } = this.#deps
    if (!this.#provider) return
    const { name, capabilities } = this.#provider
    log.info({ provider: name, ...capabilities }, 'SMS provider ready')
    if (name === 'twilio') {
      log.warn(
        { provider: name },
        'Twilio redacts one-time codes that its numbers receive (error 30038); a SIM card behind sms.provider android receives them',
      )
    }
  }

  #choose(inbound: () => Inbound): SmsProvider | undefined {
    const { database } = this.#deps
    return chosen({
      ...this.#deps,
      settings: () => this.#settings,
      outside: this.#outside,
      inbound,
      isTaken: async (number) => (await database.get(sql`SELECT 1 FROM phone_numbers WHERE number = ${number}`)) !== undefined,
    })
  }
}

/** Bytes of an answer's headers and encoding besides the file. */
const heads = 512 * 1024

function outsideSettings({ sms, dns }: Config): OutsideSettings {
  const { allow_networks, media_limit } = sms
  return { allow_networks, allow_http: false, resolve: resolver(dns), largest: media_limit + heads }
}
