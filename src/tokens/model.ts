import * as z from 'zod'
import { day } from '../core/clock.ts'
import { Maker } from '../accounts/model.ts'
import { invalid } from '../core/fault.ts'
import { Id, Json, Timestamp } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'

/** How long after its last use a key stays published, in milliseconds: the longest validity of a signature. */
export const longestSignature = day

/** The tolerated clock difference in milliseconds. */
export const leeway = 30_000

/** Seconds for which others may cache our keys and public documents. */
const documentAge = 300

/** Milliseconds that a key is published before it signs: twice the time for which others may cache. */
export const publicationAge = 2 * documentAge * 1000

/** RFC 7517, RFC 8037. */
export const JwkSet = z
  .object({
    keys: z.array(
      z.object({
        kty: z.literal('OKP'),
        crv: z.literal('Ed25519'),
        x: z.string(),
        kid: z.string().meta({ description: 'RFC 7638 thumbprint' }),
        alg: z.literal('EdDSA'),
        use: z.literal('sig'),
      }),
    ),
  })
  .meta({ id: 'JwkSet' })
type Jwk = z.output<typeof JwkSet>['keys'][number]

/** A public Ed25519 key of the box as it is published (RFC 8037): `kid` is its RFC 7638 thumbprint. */
export interface PublishedKey {
  kid: string
  jwk: Jwk
  /** The same key as a Multikey: `z6Mk…` (multibase base58btc of the multicodec ed25519-pub). */
  multibase: string
}

/** Signs for the box with the active key. */
export interface TokenSigner {
  /**
   * Creates a compact JWS (EdDSA) of these claims; `iat`, `nbf` and `exp` in seconds are the caller's. Throws without an `exp` within 24 h.
   * `typ` is that of the JOSE header: the default `JWT` is for identity tokens alone, so that no other document passes as one.
   */
  sign(claims: Record<string, unknown>, typ?: string): Promise<string>
  /** Every key that may be needed to verify a signature: the active one first, including the next one. */
  published(): Promise<PublishedKey[]>
}

/** The longest validity of an identity token in seconds. */
export const longestToken = 900

/** Why a token is invalid, as a stable code. */
export const Flaw = z.enum([
  'malformed',
  'unsupported_algorithm',
  'unsupported_header',
  'wrong_type',
  'expired',
  'not_yet_valid',
  'issued_in_the_future',
  'lifetime_too_long',
  'wrong_issuer',
  'wrong_subject',
  'wrong_audience',
  'unknown_key',
  'bad_signature',
  'revoked',
  'unknown_subject',
  'suspended',
  'issuer_unreachable',
  'issuer_invalid',
])
export type Flaw = z.output<typeof Flaw>

/** The result of verifying a token: its claims, and whether it is valid. */
export type TokenVerdict =
  | {
      valid: true
      claims: Record<string, unknown>
      /** Null for a token of another box. */
      identityId: string | null
      agentId: string | null
    }
  | {
      valid: false
      reason: Flaw
      /** The reason as a sentence. */
      message: string
      /** True if a retry may succeed, as the other box did not answer. */
      temporary: boolean
      /** Null unless the signature was valid. */
      claims: Record<string, unknown> | null
    }

/**
 * Verifies identity tokens of this box and of others. `audience` is this box's public URL by default. An invalid token is a result, never an
 * error.
 */
export type TokenJudge = (account: string, token: string, audience: string | undefined) => Promise<TokenVerdict>

/** The result of resolving a DID of another box: `elsewhere` is not resolved, and `unreachable` may succeed on a retry. */
export interface Resolution {
  state: 'there' | 'nobody' | 'unreachable' | 'elsewhere'
  /** The state as a sentence. */
  message: string
}

/** Resolves DIDs of other boxes. */
export type DidResolver = (account: string, did: string) => Promise<Resolution>

const Audience = z
  .string()
  .min(1)
  .max(512)
  .refine((text) => !/[\p{Cc}\p{Cs}]/u.test(text), { error: 'must not contain control characters' })

export const TokenInput = z
  .strictObject({
    audience: Audience.optional().meta({
      description: 'the recipient of the token, such as its origin; default: the public URL of this box',
    }),
    aud: Audience.optional().meta({ description: 'the same as audience' }),
    expires_in: z
      .int({ error: 'must be a whole number of seconds from 30 to 900' })
      .min(30, { error: 'must be a whole number of seconds from 30 to 900' })
      .max(longestToken, { error: 'must be a whole number of seconds from 30 to 900' })
      .default(300)
      .meta({ description: 'seconds' }),
  })
  .meta({ id: 'TokenWish' })
export type TokenInput = z.output<typeof TokenInput>

export const IdentityToken = z
  .object({ token: z.string().meta({ description: 'a JWT signed with EdDSA' }), expires_at: Timestamp })
  .meta({ id: 'IdentityToken' })
export type IdentityToken = z.output<typeof IdentityToken>

export const TokensRevoked = z.object({ identity_id: Id('ident'), revoked_at: Timestamp }).meta({ id: 'TokensRevoked' })
export type TokensRevoked = z.output<typeof TokensRevoked>

export const TokenQuestion = z
  .strictObject({
    token: z.string().min(1).max(65_536),
    audience: Audience.optional().meta({ description: 'the expected audience; default: the public URL of this box' }),
    aud: Audience.optional().meta({ description: 'the same as audience' }),
  })
  .meta({ id: 'TokenQuestion' })
export type TokenQuestion = z.output<typeof TokenQuestion>

/** The subject of a verified token, with the token's own data only. */
export const Verified = z
  .object({
    valid: z.boolean(),
    reason: Flaw.nullable().meta({ description: 'why it is not valid' }),
    message: z.string().nullable().meta({ description: 'the reason as a sentence' }),
    temporary: z.boolean().meta({ description: 'whether a retry may help: another box did not respond' }),
    claims: z.record(z.string(), Json).nullable().meta({
      description: 'its claims; null unless its signature is valid',
    }),
    identity: z
      .object({ id: Id('ident').nullable().meta({ description: "only of the caller's account" }), email: z.string() })
      .nullable()
      .meta({ description: 'null unless it belongs to this box' }),
    agent: z
      .object({
        did: z.string(),
        id: Id('agent').nullable().meta({ description: 'only of this box' }),
        handle: z.string().nullable(),
        display_name: z.string().nullable(),
      })
      .nullable(),
    reputation: z.object({ score: z.number(), tier: z.string() }).nullable().meta({
      description: 'the present value; null unless it belongs to this box: the value given by another box is in the claims',
    }),
  })
  .meta({ id: 'VerifiedToken' })
export type Verified = z.output<typeof Verified>

export const KeyRotation = z
  .strictObject({
    now: z.boolean().default(false).meta({
      description: 'replaces all keys immediately because they may have leaked; everything they signed becomes invalid',
    }),
  })
  .meta({ id: 'KeyRotation' })

export const KeyRotated = z
  .object({ kid: z.string().meta({ description: 'the key that signs from now on' }), replaced_all: z.boolean() })
  .meta({ id: 'KeyRotated' })

const TokenIssued = z.object({
  id: Id('tok'),
  identity_id: Id('ident'),
  audience: z.string(),
  expires_at: Timestamp,
  created_by: Maker,
})

export const tokenIssued = eventType(
  'token.issued',
  ['identities:read'],
  'An identity token was issued. Contains its audience, never the token.',
  TokenIssued,
)
export const tokenRevoked = eventType(
  'token.revoked',
  ['identities:read'],
  'All identity tokens that an identity had were revoked.',
  TokensRevoked,
)

/** The audience in either field. Throws Fault invalid_request for two different ones. */
export function oneAudience({ audience, aud }: { audience?: string | undefined; aud?: string | undefined }): string | undefined {
  if (audience !== undefined && aud !== undefined && audience !== aud) {
    throw invalid('aud', 'Send audience or aud, not two different values.')
  }
  return audience ?? aud
}
