import * as z from 'zod'

/** The most milliseconds after which a signature of the box may still be valid: a retired key is published for that long. */
export const longestSignature = 86_400_000

/** Milliseconds by which clocks may disagree. */
export const leeway = 30_000

/** Seconds that others may keep our keys and public documents before they ask again. */
export const documentAge = 300

/** Milliseconds that a key is published before it signs: twice as long as others may keep what they know. */
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
export type Jwk = z.output<typeof JwkSet>['keys'][number]

/** A public Ed25519 key of the box as it is published (RFC 8037): `kid` is its RFC 7638 thumbprint. */
export interface PublishedKey {
  kid: string
  jwk: Jwk
  /** The same key as a Multikey: `z6Mk…` (multibase base58btc of the multicodec ed25519-pub). */
  multibase: string
}

/** What signs for the box, with the key in use. */
export interface Signer {
  /**
   * A compact JWS (EdDSA) over these claims; `iat`, `nbf` and `exp` in seconds are the caller's. Throws without an `exp` within 24 h. `typ` is
   * that of the JOSE header: `JWT`, unless given, is for identity tokens alone, so that nothing else is taken for one.
   */
  sign(claims: Record<string, unknown>, typ?: string): Promise<string>
  /** Every key that a signature may still have to be verified with, the one in use first, the next one (not yet in use) included. */
  published(): Promise<PublishedKey[]>
}

/** What came of looking at a token: what it claims, and whether that is to be believed. */
export type TokenVerdict =
  | { valid: true; claims: Record<string, unknown>; identityId: string | null; agentId: string | null }
  | { valid: false; reason: string; claims: Record<string, unknown> | null }

/** What looks at identity tokens, of this box and of others. */
export interface TokenJudge {
  /** `audience` is this box's public URL unless given. A token that is no good is an answer, never an error. */
  judge(token: string, audience: string | undefined, signal: AbortSignal): Promise<TokenVerdict>
}
