import { minute } from '../../core/clock.ts'
import { type TransportAnswer, later, type Security, Undelivered } from './undelivered.ts'
import { type Log, loggable } from '../../core/log.ts'
import type { AttemptResult, AttemptNotes } from '../../queue/courier.ts'
import { readAnswer, statusOf } from './outcomes.ts'

/** Longest time for one attempt in milliseconds, and for one with a large message: RFC 5321 4.5.3.2.6 allows ten minutes after its end. */
export interface Timeouts {
  usual: number
  large: number
}


/** Octets from which on a message is large. */
const large = 1024 * 1024

/** Octets of messages in memory at one time. */
const maxHeld = 256 * 1024 * 1024

/** Bounds attempts: each in time, and all together in the memory that their messages take. */
export class AttemptBounds {
  readonly #timeout: Timeouts
  /** Octets of messages on their way now. */
  #held = 0

  constructor(timeout: Timeouts = { usual: 5 * minute, large: 10 * minute }) {
    this.#timeout = timeout
  }

  /** Runs an attempt that ends in time; it calls `hold` before it has the message in memory, which throws when there is no room. */
  async run<Result>(
    size: number,
    signal: AbortSignal,
    work: (limited: AbortSignal, hold: () => void) => Promise<Result>,
  ): Promise<Result> {
    const time = size > large ? this.#timeout.large : this.#timeout.usual
    const overdue = new AbortController()
    const timer = setTimeout(() => overdue.abort(), time)
    let held = 0
    const hold = (): void => {
      if (this.#held > 0 && this.#held + size > maxHeld) {
        throw new Undelivered(
          { outcome: 'deferred', response: 'too much mail is on its way; this one waits' },
          { within: minute },
        )
      }
      held = size
      this.#held += size
    }
    try {
      return await work(AbortSignal.any([signal, overdue.signal]), hold)
    } catch (error) {
      if (overdue.signal.aborted && !signal.aborted && !(error instanceof Undelivered)) {
        throw later(`no end within ${time / 1000} s`, '4.4.2')
      }
      throw error
    } finally {
      clearTimeout(timer)
      this.#held -= held
    }
  }
}

/** Characters of a reply that are logged. */
const maxSaid = 512

/** Writes the line of one attempt to deliver a message to one recipient. */
export function writeAttempt(log: Log, { id: queue_id, attempt, outcome, answer, next, ms, notes }: AttemptResult<unknown>): void {
  const said = readAnswer(answer)
  const result = outcome === 'interrupted' ? outcome : statusOf(outcome, said)
  const { message_id, email_id, from, to, return_path, tls = null, cipher, verified, email_ids } = notes
  const reached = reachedIn(notes)
  const line = {
    queue_id,
    message_id,
    email_id,
    from,
    to,
    return_path,
    email_ids,
    mx: said.mx ?? reached.mx,
    ip: said.ip ?? reached.ip,
    tls,
    cipher,
    verified,
    code: said.smtp_code,
    enhanced_code: said.enhanced_code,
    reply: replyOf(said),
    attempt,
    result,
    next_attempt_at: next ?? null,
    ms,
  }
  if (result === 'bounced' || result === 'failed') log.warn(line, 'Delivery failed')
  else log.info(line, 'Delivery attempt')
}

/** Notes how the connection was secured. */
export function noteSecurity(noted: AttemptNotes, security: Security | null): void {
  if (security) Object.assign(noted, { tls: security.version, cipher: security.cipher, verified: security.verified })
}

/** The server that an attempt came to last. */
export function reachedIn({ mx, ip }: AttemptNotes): { mx: string | null; ip: string | null } {
  return { mx: typeof mx === 'string' ? mx : null, ip: typeof ip === 'string' ? ip : null }
}

/** A reply as it was heard; a sentence of our own where there was none. */
function replyOf({ smtp_code, enhanced_code, response }: TransportAnswer): string {
  const parts = [smtp_code, smtp_code === null ? null : enhanced_code, response]
  return loggable(parts.filter((one) => one !== null && one !== '').join(' '), maxSaid)
}
