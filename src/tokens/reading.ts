import { parseJson } from '../http/json.ts'
import { type Flaw, leeway, longestToken } from './model.ts'

/** The claims of a token in the required form; unverified. */
export interface TokenClaims {
  kid: string
  iss: string
  sub: string
  claims: Record<string, unknown>
  /** Seconds. */
  times: { iat: number; exp: number; nbf: number }
}

/** Thrown when a token is invalid. */
export class InvalidToken extends Error {
  readonly reason: Flaw
  readonly temporary: boolean

  constructor(reason: Flaw, message: string, temporary = false) {
    super(message)
    this.name = 'Disbelief'
    this.reason = reason
    this.temporary = temporary
  }
}

/** The longest accepted token in characters. */
const longest = 8192

/** Parses a token without verifying it. Throws InvalidToken when it does not have the form of an identity token (RFC 7519, RFC 8725). */
export function readToken(token: string): TokenClaims {
  if (token.length > longest) throw new InvalidToken('malformed', `A token has at most ${longest} characters.`)
  const parts = token.split('.')
  if (parts.length !== 3)
    throw new InvalidToken('malformed', 'It is not a token: it must be three parts of base64url separated by dots.')
  const [header, payload, signature] = parts.map(decoded)
  const kid = readHeader(members(header!, 'header'))
  if (signature!.length !== 64) throw new InvalidToken('bad_signature', 'An Ed25519 signature has 64 bytes.')
  const claims = members(payload!, 'payload')
  const { iss, sub } = claims
  if (typeof iss !== 'string' || typeof sub !== 'string' || sub === '' || sub.length > 512) {
    throw new InvalidToken('malformed', 'It must have an issuer (iss) and a subject (sub).')
  }
  return { kid, iss, sub, claims, times: timesOf(claims) }
}

/** Throws InvalidToken when a token is not valid now, or not for this audience. */
export function checkClaims({ claims, times }: TokenClaims, now: number, audience: string): void {
  const { iat, exp, nbf } = times
  if (exp <= iat || exp - iat > longestToken || exp - nbf > longestToken) {
    throw new InvalidToken(
      'lifetime_too_long',
      `A token is valid for at most ${longestToken / 60} minutes; this one claims longer.`,
    )
  }
  if (iat * 1000 > now + leeway) throw new InvalidToken('issued_in_the_future', 'It claims to be issued in the future.')
  if (nbf * 1000 > now + leeway) throw new InvalidToken('not_yet_valid', 'It is not valid yet.')
  if (exp * 1000 + leeway <= now) throw new InvalidToken('expired', 'It has expired.')
  const named = Array.isArray(claims['aud']) ? (claims['aud'] as unknown[]) : [claims['aud']]
  if (!named.includes(audience)) throw new InvalidToken('wrong_audience', `It has another audience: its aud is not ${audience}.`)
}

/** RFC 7515 4.1: header fields that could name another key, or require an extension, are refused; other unknown fields are ignored. */
function readHeader(header: Record<string, unknown>): string {
  const { alg, kid, typ } = header
  if (alg !== 'EdDSA') throw new InvalidToken('unsupported_algorithm', 'Only tokens signed with EdDSA are accepted.')
  const astray = ['crit', 'jku', 'jwk', 'x5u', 'x5c', 'b64', 'zip', 'enc'].find((name) => name in header)
  if (astray !== undefined) throw new InvalidToken('unsupported_header', `Its header must not have ${astray}.`)
  if (typ !== undefined && (typeof typ !== 'string' || typ.toUpperCase() !== 'JWT')) {
    throw new InvalidToken('wrong_type', 'It is not an identity token: its typ is not JWT.')
  }
  // also the URL of a key in a DID document
  if (typeof kid !== 'string' || !/^[\w.:%~#-]{1,700}$/.test(kid))
    throw new InvalidToken('unknown_key', 'Its header names no key (kid).')
  return kid
}

function timesOf({ iat, exp, nbf = iat }: Record<string, unknown>): TokenClaims['times'] {
  if (!isTime(iat) || !isTime(exp) || !isTime(nbf)) {
    throw new InvalidToken('malformed', 'It must have the times of issue (iat) and expiry (exp), in seconds.')
  }
  return { iat, exp, nbf }
}

/** RFC 7519 2: seconds since 1970, possibly fractional. */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value < 1e11
}

/** Strictly RFC 4648 5: another encoding of the same bytes is another token. */
function decoded(part: string): Buffer {
  const octets = Buffer.from(part, 'base64url')
  if (part === '' || octets.toString('base64url') !== part) throw new InvalidToken('malformed', 'A part of it is not base64url.')
  return octets
}

function members(octets: Buffer, what: string): Record<string, unknown> {
  try {
    return parseJson(octets)
  } catch {
    throw new InvalidToken('malformed', `Its ${what} is not an unambiguous JSON object.`)
  }
}
