import { minute } from '../../core/clock.ts'
import { type TransportAnswer, later, type Security, Undelivered } from './undelivered.ts'
import { type Log, loggable } from '../../core/log.ts'
import type { AttemptResult, AttemptNotes } from '../../queue/courier.ts'
import { messageMemory, WorkLimiter } from '../../net/work-limiter.ts'
import { statusOf } from './outcomes.ts'

/** Longest time for one attempt in milliseconds, and for one with a large message: RFC 5321 4.5.3.2.6 allows ten minutes after its end. */
export interface Timeouts {
  usual: number
  large: number
}

/** Bytes from which a message is large. */
const large = 1024 * 1024

/** Bytes of messages in memory: servers choose how long they take to read them, so that one account must not hold up the mail of others. */
const limits = messageMemory('too much mail is being sent; this message waits')

/** Limits the time of each attempt, and the memory of the messages of each account and of all. */
export class AttemptBounds {
  readonly #timeout: Timeouts
  readonly #limiter = new WorkLimiter(limits)

  constructor(timeout: Timeouts = { usual: 5 * minute, large: 10 * minute }) {
    this.#timeout = timeout
  }

  /** Runs an attempt with a timeout. It calls `reserve` before it reads the message into memory, which throws when the limit is reached. */
  async run<Result>(
    { account, size }: { account: string; size: number },
    signal: AbortSignal,
    work: (limited: AbortSignal, reserve: () => void) => Promise<Result>,
  ): Promise<Result> {
    const time = size > large ? this.#timeout.large : this.#timeout.usual
    const limited = new AbortController()
    let overdue = false
    const timer = setTimeout(() => {
      overdue = true
      limited.abort()
    }, time)
    const cut = (): void => limited.abort(signal.reason)
    if (signal.aborted) cut()
    signal.addEventListener('abort', cut)
    const share = this.#limiter.share(account)
    const reserve = (): void => {
      try {
        share.reserve(size)
      } catch {
        throw new Undelivered({ outcome: 'deferred', response: limits.memory.message }, { maxDelay: minute })
      }
    }
    try {
      return await work(limited.signal, reserve)
    } catch (error) {
      if (overdue && !signal.aborted && !(error instanceof Undelivered)) {
        throw later(`not finished within ${time / 1000} s`, '4.4.2')
      }
      throw error
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', cut)
      share.release()
    }
  }
}

/** Characters of a reply that are logged. */
const maxReply = 512

/** Writes the line of one attempt to deliver a message to one recipient. */
export function writeAttempt(
  log: Log,
  { id: queue_id, attempt, outcome, next, ms, notes }: AttemptResult<unknown>,
  reply: TransportAnswer,
): void {
  const result = outcome === 'interrupted' ? outcome : statusOf(outcome, reply)
  const { message_id, email_id, from, to, return_path, tls = null, cipher, verified, email_ids } = notes
  const server = serverIn(notes)
  const line = {
    queue_id,
    message_id,
    email_id,
    from,
    to,
    return_path,
    email_ids,
    mx: reply.mx ?? server.mx,
    ip: reply.ip ?? server.ip,
    tls,
    cipher,
    verified,
    code: reply.smtp_code,
    enhanced_code: reply.enhanced_code,
    reply: replyText(reply),
    attempt,
    result,
    next_attempt_at: next ?? null,
    ms,
  }
  if (result === 'bounced' || result === 'failed') log.warn(line, 'delivery failed')
  else log.info(line, 'delivery attempt')
}

/** Adds the TLS fields to the notes. */
export function noteSecurity(notes: AttemptNotes, security: Security | null): void {
  if (security) Object.assign(notes, { tls: security.version, cipher: security.cipher, verified: security.verified })
}

/** The last server of an attempt. */
export function serverIn({ mx, ip }: AttemptNotes): { mx: string | null; ip: string | null } {
  return { mx: typeof mx === 'string' ? mx : null, ip: typeof ip === 'string' ? ip : null }
}

/** The reply of the server, or our own description without one. */
function replyText({ smtp_code, enhanced_code, response }: TransportAnswer): string {
  const parts = [smtp_code, smtp_code === null ? null : enhanced_code, response]
  return loggable(parts.filter((one) => one !== null && one !== '').join(' '), maxReply)
}
