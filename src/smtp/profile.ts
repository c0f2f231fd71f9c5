import { Fault } from '../core/fault.ts'
import { destinationOf, recipientOf } from './paths.ts'
import { Refusal, refusalFor } from './replies.ts'

/** The differences between receiving mail from other servers and submission by our own clients. */
export interface Profile {
  /** Parameters of MAIL. */
  parameters: readonly string[]
  /** True if a message that was already delivered to the recipient counts as a loop (RFC 9228). Submitted messages may be resent by hand. */
  checksDeliveredTo: boolean
  /** The address of a RCPT command; throws a `Refusal`. */
  recipientOf(path: string, smtputf8: boolean): string
  /** The refusal sent to the client for an error. */
  refusalFor(error: unknown): Refusal
}

export const receiving: Profile = { parameters: ['SIZE', 'BODY', 'SMTPUTF8'], checksDeliveredTo: true, recipientOf, refusalFor }

/** The AUTH= parameter is accepted and ignored (RFC 4954 5). */
export const submitting: Profile = {
  parameters: [...receiving.parameters, 'AUTH', 'REQUIRETLS'],
  checksDeliveredTo: false,
  recipientOf: destinationOf,
  refusalFor: (error) => (error instanceof Fault ? ofFault(error) : refusalFor(error)),
}

/** Submission clients are sent the message that the API would have answered. */
function ofFault(fault: Fault): Refusal {
  if (fault.type === 'internal_error') return refusalFor(fault)
  if (fault.type === 'rate_limited' || fault.code === 'plan_limit_reached') return new Refusal(451, '4.7.1', fault.message)
  if (fault.type === 'unauthorized') return new Refusal(421, '4.7.0', fault.message)
  if (fault.code === 'sender_not_allowed') return new Refusal(553, '5.7.1', fault.message)
  if (fault.code === 'too_many_recipients') return new Refusal(452, '4.5.3', fault.message)
  if (fault.code === 'mailbox_full') return new Refusal(452, '4.2.2', fault.message)
  if (fault.code === 'too_many_hops') return new Refusal(554, '5.4.6', fault.message)
  if (fault.code === 'message_too_large') return new Refusal(552, '5.3.4', fault.message)
  if (fault.type !== 'invalid_request') return new Refusal(550, '5.7.1', fault.message)
  if (fault.code === 'recipient_suppressed' || fault.code === 'outbound_off') return new Refusal(550, '5.7.1', fault.message)
  return ['to', 'cc', 'bcc'].includes(fault.param ?? '')
    ? new Refusal(553, '5.1.3', fault.message)
    : new Refusal(554, '5.6.0', fault.message)
}
