import { trimBothEnds } from '../core/text.ts'
import type { SessionCookie } from './route.ts'

/** When requests from other sites carry the cookie: never, when a link is followed, or always. */
export type SameSite = 'strict' | 'lax' | 'none'

/**
 * The name of the session's cookie. With `__Host-` browsers take it over TLS only, and from no neighbouring host (RFC 6265bis 4.1.3.2);
 * a box that is reached on its own machine does not need that.
 */
export function cookieName(origin: string): string {
  return isSecure(origin) ? '__Host-pillarbox' : 'pillarbox'
}

/** The value of `Set-Cookie`; out of reach of scripts, and for this host alone. */
export function writeCookie({ value, seconds }: SessionCookie, origin: string, sameSite: SameSite): string {
  const secure = isSecure(origin) ? '; Secure' : ''
  const words = { strict: 'Strict', lax: 'Lax', none: 'None' }
  return `${cookieName(origin)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=${words[sameSite]}${secure}`
}

/** The session token of the cookie; undefined when there is none, or when the name occurs twice, as then one was planted. */
export function readCookie(header: string | undefined, origin: string): string | undefined {
  if (header === undefined) return undefined
  const name = `${cookieName(origin)}=`
  const found = header
    .split(';')
    // no other white space: browsers accept names that start with any from sibling hosts, whatever follows (RFC 6265bis 5.7)
    .map((pair) => trimBothEnds(pair, ' \t'))
    .filter((pair) => pair.startsWith(name))
  const value = found.length === 1 ? found[0]!.slice(name.length) : ''
  return /^[\w-]{1,200}$/.test(value) ? value : undefined
}

/** True if the cookie must not travel in the clear: anywhere but on the machine itself (`localhost`: RFC 6761 6.3). */
function isSecure(origin: string): boolean {
  return !/^http:\/\/(?:(?:[^/]+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/.test(origin)
}
