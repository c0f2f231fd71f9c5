import type { IncomingHttpHeaders } from 'node:http'
import { Fault } from '../core/fault.ts'

/**
 * Fault 403, code `csrf`, unless a call came from a page of one of these origins, ours first: a browser sends a session's cookie along
 * with whatever any page asks of it, and says truly where that page is from (Fetch standard, `Origin`; Fetch Metadata, `Sec-Fetch-Site`).
 */
export function foreignPage(headers: IncomingHttpHeaders, origins: readonly string[]): Fault | undefined {
  const { origin, 'sec-fetch-site': site } = headers
  const ours = origin === undefined ? site === 'same-origin' : origins.includes(origin)
  return ours ? undefined : refusal(origins)
}

/** The same for a GET that does something, of which browsers say less: only what is known to come from elsewhere is refused. */
export function foreignLink(headers: IncomingHttpHeaders, origins: readonly string[]): Fault | undefined {
  const { origin, 'sec-fetch-site': site = 'none' } = headers
  const ours = origin === undefined ? site === 'same-origin' || site === 'none' : origins.includes(origin)
  return ours ? undefined : refusal(origins)
}

function refusal(origins: readonly string[]): Fault {
  return new Fault(
    'forbidden',
    `To sign in, and to change something with a session, send the header Origin: ${origins[0]}, as pages from there do. ` +
      'http.cors_origins may name further origins.',
    { code: 'csrf', param: 'Origin' },
  )
}

/** Methods that change nothing (RFC 9110 9.2.1). */
export function isSafe(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}
