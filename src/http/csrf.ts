import type { IncomingHttpHeaders } from 'node:http'
import { Fault } from '../core/fault.ts'

/**
 * Fault 403, code `csrf`, unless a call came from a page of one of these origins, of which the first is our own. A browser adds the session cookie
 * to requests of any page and names the origin of that page (Fetch standard, `Origin`; Fetch Metadata, `Sec-Fetch-Site`).
 */
export function crossSitePage(headers: IncomingHttpHeaders, origins: readonly string[]): Fault | undefined {
  const { origin, 'sec-fetch-site': site } = headers
  const ours = origin === undefined ? site === 'same-origin' : origins.includes(origin)
  return ours ? undefined : refusal(origins)
}

/** The same for a GET with side effects, for which browsers send less: only requests known to come from another site are refused. */
export function crossSiteLink(headers: IncomingHttpHeaders, origins: readonly string[]): Fault | undefined {
  const { origin, 'sec-fetch-site': site = 'none' } = headers
  const ours = origin === undefined ? site === 'same-origin' || site === 'none' : origins.includes(origin)
  return ours ? undefined : refusal(origins)
}

/**
 * Fault 403, code `foreign_page`, for a call by a page of another origin. It needs a key and no cookie; but a page that has come to our address by its
 * own name (DNS rebinding) is no program of the owner of the key.
 */
export function foreignPage({ origin }: IncomingHttpHeaders, origins: readonly string[]): Fault | undefined {
  if (origin === undefined || origins.includes(origin)) return undefined
  return new Fault('forbidden', 'This page is of another origin than the box. http.cors_origins can list further origins.', {
    code: 'foreign_page',
    param: 'Origin',
  })
}

function refusal(origins: readonly string[]): Fault {
  return new Fault(
    'forbidden',
    `Signing in and changes with a session require the header Origin: ${origins[0]}, which browsers send from its pages. ` +
      'http.cors_origins can list further origins.',
    { code: 'csrf', param: 'Origin' },
  )
}

/** Methods that change nothing (RFC 9110 9.2.1). */
export function isSafe(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}
