import { invalid } from '../../core/fault.ts'
import { receivedHops } from '../../smtp/trace.ts'

/** Maximum hops of a message that is forwarded. */
export const maxHops = 25

/** Throws Fault invalid_request, code `too_many_hops`, when a message has so many hops that forwarding it looks like a loop (RFC 5321 6.3). */
export function requireFewHops(raw: Buffer, param: string): void {
  const hops = receivedHops(raw)
  if (hops <= maxHops) return
  throw invalid(
    param,
    `The message has passed ${hops} servers, more than ${maxHops}: this is a mail loop, and it is not relayed.`,
    'too_many_hops',
  )
}
