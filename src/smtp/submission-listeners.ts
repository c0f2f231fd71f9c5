import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Budget } from './memory-budget.ts'
import type { ListenerMetrics } from './counters.ts'
import { SessionLog } from './session-log.ts'
import { LoginAttempts, type LoginLimits } from './logins.ts'
import type { SubmissionAuth } from './delivery-target.ts'
import { Receiver, type ReceiverSettings } from './receiver.ts'

export interface SubmissionListenerSettings extends ReceiverSettings, LoginLimits {
  /** Where TLS is spoken from the first octet. */
  listen_tls: string[]
}

interface Beside {
  clock: Clock
  log: Log
  budget: Budget
  figures: ListenerMetrics
}

type Place = { host: string; port: number }

/** Where programs hand in mail (RFC 6409): with STARTTLS, and with TLS from the first octet (RFC 8314). What has no place does not listen. */
export class SubmissionListeners {
  readonly #submissionAuth: SubmissionAuth
  readonly #logins: LoginAttempts
  readonly #starttls: Receiver | null
  readonly #tls: Receiver | null
  #settings: SubmissionListenerSettings

  constructor(submissionAuth: SubmissionAuth, settings: SubmissionListenerSettings, { clock, log, ...beside }: Beside) {
    this.#submissionAuth = submissionAuth
    this.#settings = settings
    const journal = new SessionLog(log, beside.figures)
    this.#logins = new LoginAttempts(submissionAuth, () => this.#settings, clock, log, journal)
    const open = (own: ReceiverSettings): Receiver | null =>
      own.listen.length === 0 ? null : new Receiver(own, this.#logins, log, { ...beside, journal })
    this.#starttls = open(this.#fitted(false))
    this.#tls = open(this.#fitted(true))
  }

  get addresses(): { starttls: Place[]; tls: Place[] } {
    return { starttls: this.#starttls?.addresses ?? [], tls: this.#tls?.addresses ?? [] }
  }

  /** Counts since the box started, of all doors together; what is held of messages counts at the receiver. */
  get stats(): Record<string, number> {
    const sums: Record<string, number> = { ...this.#logins.stats }
    for (const { octets_held: _, ...counts } of this.#open().map(({ stats }) => stats)) {
      for (const [what, count] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + count
    }
    return sums
  }

  async start(): Promise<void> {
    for (const door of this.#open()) await door.start()
  }

  async stop(): Promise<void> {
    await Promise.all(this.#open().map((door) => door.stop()))
  }

  /** As `Receiver.reload`. */
  reload(settings: SubmissionListenerSettings): void {
    this.#settings = settings
    this.#starttls?.reload(this.#fitted(false))
    this.#tls?.reload(this.#fitted(true))
  }

  #open(): Receiver[] {
    return [this.#starttls, this.#tls].filter((door) => door !== null)
  }

  #fitted(implicit_tls: boolean): ReceiverSettings {
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
