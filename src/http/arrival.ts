import type { IncomingMessage } from 'node:http'
import type { Networks } from '../core/networks.ts'
import type { Arrival } from './admission.ts'
import { clientAddress } from './client-address.ts'

/** The address a request comes from, as far as `trusted` proxies tell. */
export function addressOf({ headers, socket }: IncomingMessage, trusted: Networks): string {
  const forwarded = headers['x-forwarded-for']
  return clientAddress(socket.remoteAddress, typeof forwarded === 'string' ? forwarded : undefined, trusted)
}

/** What admission looks at in a request; `inPerson` for one that came by the box's own socket. */
export function arrivalOf(request: IncomingMessage, trusted: Networks, inPerson: boolean): Arrival {
  const { headers } = request
  const account = headers['pillarbox-account']
  return {
    method: request.method,
    headers,
    address: addressOf(request, trusted),
    userAgent: headers['user-agent'] ?? '',
    operator: inPerson ? { account: typeof account === 'string' ? account : undefined } : undefined,
  }
}
