import { canonicalAddress, type Networks } from '../../net/networks.ts'
import type { IncomingMessage } from 'node:http'
import type { AdmissionRequest } from '../admission.ts'

/**
 * The address of the client: the peer, or behind trusted proxies the last untrusted hop of `X-Forwarded-For`. Hops before that one are sent by the
 * client and prove nothing.
 */
export function clientAddress(peer: string | undefined, forwarded: string | undefined, trusted: Networks): string {
  let address = canonicalAddress(peer ?? '') ?? ''
  const hops = (forwarded ?? '').split(',').toReversed()
  for (const hop of hops) {
    if (!trusted.has(address)) return address
    const next = canonicalAddress(withoutPort(hop.trim()))
    if (next === undefined) return address
    address = next
  }
  return address
}

/** Some proxies write `203.0.113.7:4711` or `[2001:db8::7]:4711`. */
function withoutPort(hop: string): string {
  const bracketed = /^\[([^\]]+)\](:\d+)?$/.exec(hop)
  if (bracketed) return bracketed[1]!
  return /^[\d.]+:\d+$/.test(hop) ? hop.slice(0, hop.indexOf(':')) : hop
}

/** The client address of a request behind `trusted` proxies. */
export function addressOf({ headers, socket }: IncomingMessage, trusted: Networks): string {
  const forwarded = headers['x-forwarded-for']
  return clientAddress(socket.remoteAddress, typeof forwarded === 'string' ? forwarded : undefined, trusted)
}

/** The admission fields of a request; `isOperator` for the control socket. */
export function admissionRequestOf(request: IncomingMessage, trusted: Networks, isOperator: boolean): AdmissionRequest {
  const { headers } = request
  const account = headers['pillarbox-account']
  return {
    method: request.method,
    headers,
    address: addressOf(request, trusted),
    userAgent: headers['user-agent'] ?? '',
    operator: isOperator ? { account: typeof account === 'string' ? account : undefined } : undefined,
  }
}
