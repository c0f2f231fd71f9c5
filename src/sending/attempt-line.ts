import { loggable } from '../core/log.ts'
import type { Log } from '../core/log.ts'
import type { Ended, Noted } from '../delivery/courier.ts'
import { readAnswer, statusOf } from './outcomes.ts'
import type { CourierAnswer, Security } from './undelivered.ts'

/** Characters of a reply that are logged. */
const mostSaid = 512

/** Writes the line of one attempt to deliver a message to one recipient. */
export function writeAttempt(log: Log, { id: queue_id, attempt, outcome, answer, next, ms, noted }: Ended<unknown>): void {
  const said = readAnswer(answer)
  const result = outcome === 'interrupted' ? outcome : statusOf(outcome, said)
  const { message_id, email_id, from, to, return_path, tls = null, cipher, verified, email_ids } = noted
  const reached = reachedIn(noted)
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
export function noteSecurity(noted: Noted, security: Security | null): void {
  if (security) Object.assign(noted, { tls: security.version, cipher: security.cipher, verified: security.verified })
}

/** The server that an attempt came to last. */
export function reachedIn({ mx, ip }: Noted): { mx: string | null; ip: string | null } {
  return { mx: typeof mx === 'string' ? mx : null, ip: typeof ip === 'string' ? ip : null }
}

/** A reply as it was heard; a sentence of our own where there was none. */
function replyOf({ smtp_code, enhanced_code, response }: CourierAnswer): string {
  const parts = [smtp_code, smtp_code === null ? null : enhanced_code, response]
  return loggable(parts.filter((one) => one !== null && one !== '').join(' '), mostSaid)
}
