import { invalid } from '../../core/fault.ts'
import { receivedHops } from '../../smtp/trace.ts'

/** Hosts that a message may have passed and still be sent on by us. */
export const maxHops = 25

/** Throws Fault invalid_request, code `too_many_hops`, when a message has gone so far that sending it on looks like a loop (RFC 5321 6.3). */
export function requireFewHops(raw: Buffer, param: string): void {
  const hops = receivedHops(raw)
  if (hops <= maxHops) return
  throw invalid(
    param,
    `The message has passed ${hops} servers, more than ${maxHops}: it goes in a circle and is not sent on.`,
    'too_many_hops',
  )
}
