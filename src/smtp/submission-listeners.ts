import type { Basis } from '../basis.ts'
import type { BoundEndpoint, Endpoint } from '../net/listen.ts'
import type { MemoryBudget } from './memory-budget.ts'
import { type ListenerMetrics, SessionLog } from './session-log.ts'
import type { FailedLoginCounter } from './failed-logins.ts'
import { LoginAttempts, type LoginLimits } from './logins.ts'
import type { SubmissionAuth } from './delivery-target.ts'
import { Receiver, type ReceiverSettings } from './receiver.ts'

export interface SubmissionListenerSettings extends ReceiverSettings, LoginLimits {
  /** Addresses with implicit TLS. */
  listen_tls: Endpoint[]
}

interface Deps extends Pick<Basis, 'log'> {
  failed: FailedLoginCounter
  budget: MemoryBudget
  metrics: ListenerMetrics
}

/** Listeners for message submission (RFC 6409): with STARTTLS, and with implicit TLS (RFC 8314). Each listens only if it has an address. */
export class SubmissionListeners {
  readonly #submissionAuth: SubmissionAuth
  readonly #logins: LoginAttempts
  readonly #starttls: Receiver | null
  readonly #tls: Receiver | null
  #settings: SubmissionListenerSettings

  constructor(submissionAuth: SubmissionAuth, settings: SubmissionListenerSettings, { failed, log, ...beside }: Deps) {
    this.#submissionAuth = submissionAuth
    this.#settings = settings
    const sessionLog = new SessionLog(log, beside.metrics)
    this.#logins = new LoginAttempts(submissionAuth, () => this.#settings, { failed, log, sessionLog })
    const create = (receiverSettings: ReceiverSettings): Receiver | null =>
      receiverSettings.listen.length === 0 ? null : new Receiver(receiverSettings, this.#logins, log, { ...beside, sessionLog })
    this.#starttls = create(this.#settingsFor(false))
    this.#tls = create(this.#settingsFor(true))
  }

  get addresses(): { starttls: BoundEndpoint[]; tls: BoundEndpoint[] } {
    return { starttls: this.#starttls?.addresses ?? [], tls: this.#tls?.addresses ?? [] }
  }

  /** Counts since the start, summed over both listeners. `octets_held` is reported by the receiver that owns the memory budget. */
  get stats(): Record<string, number> {
    const sums: Record<string, number> = { ...this.#logins.stats }
    for (const { octets_held: _, ...counts } of this.#receivers().map(({ stats }) => stats)) {
      for (const [what, count] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + count
    }
    return sums
  }

  async start(): Promise<void> {
    for (const receiver of this.#receivers()) await receiver.start()
  }

  async stop(): Promise<void> {
    await Promise.all(this.#receivers().map((receiver) => receiver.stop()))
  }

  /** Applies new settings, like `Receiver.reload`. */
  reload(settings: SubmissionListenerSettings): void {
    this.#settings = settings
    this.#starttls?.reload(this.#settingsFor(false))
    this.#tls?.reload(this.#settingsFor(true))
  }

  #receivers(): Receiver[] {
    return [this.#starttls, this.#tls].filter((receiver) => receiver !== null)
  }

  #settingsFor(implicit_tls: boolean): ReceiverSettings {
    const { listen, listen_tls, size, max_recipients, ...others } = this.#settings
    return {
      ...others,
      implicit_tls,
      listen: implicit_tls ? listen_tls : listen,
      size: Math.min(size, this.#submissionAuth.size),
      max_recipients: Math.min(max_recipients, this.#submissionAuth.max_recipients),
    }
  }
}
