import type { Caller } from '../core/scopes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Issuing } from './issuing.ts'
import { IdentityToken, JwkSet, KeyRotated, KeyRotation, TokenQuestion, TokensRevoked, TokenInput, Verified } from './model.ts'
import type { SigningKeys } from './signing-keys.ts'

const route = routeOf('Identity tokens')

interface Nouns {
  keys: SigningKeys
  issuing: Issuing
  verify: (caller: Caller, question: TokenQuestion) => Promise<Verified>
}

export function routes({ keys, issuing, verify }: Nouns): AnyRoute[] {
  return [
    route('POST', '/identities/:id/token', {
      scope: 'identities:write',
      receipt: 'all',
      sdk: 'identities.issueToken',
      errors: { 409: ['identity_suspended'] },
      audit: 'token.issued',
      summary: 'Issue an identity token',
      description:
        'A short-lived JWT (EdDSA) that authenticates this identity to one audience; it can be verified with the public keys of this box. ' +
        'Its subject is the DID of the agent, or the id of an identity without one. A suspended identity cannot get tokens.',
      body: TokenInput,
      reply: IdentityToken,
      secret: true,
      example: { body: { audience: 'https://shop.example.com', expires_in: 120 } },
      handle: ({ caller, params, body }) => issuing.issue(caller, params.id, body),
    }),
    route('POST', '/identities/:id/token/revoke', {
      stores: false,
      scope: 'identities:write',
      receipt: ['revoked_at'],
      sdk: 'identities.revokeTokens',
      audit: 'token.revoked',
      summary: 'Revoke identity tokens',
      description:
        'All tokens issued to this identity so far are invalid here immediately. Verifiers that do not query this box accept them ' +
        'until they expire.',
      reply: TokensRevoked,
      handle: ({ caller, params }) => issuing.revoke(caller, params.id),
    }),
    route('POST', '/verify/token', {
      scope: 'identities:read',
      sdk: 'tokens.verify',
      summary: 'Verify an identity token',
      description:
        'Verifies a token of this box, or of another whose did:web document has the key (it is fetched, and cached for at most five minutes). An invalid token is ' +
        'not an error: valid is false, and reason states why.',
      body: TokenQuestion,
      reply: Verified,
      example: { body: { token: 'eyJhbGciOiJFZERTQSJ9.e30.c2lnbmF0dXJl', audience: 'https://shop.example.com' } },
      handle: ({ caller, body }) => verify(caller, body),
    }),
    route('POST', '/signing-keys/rotate', {
      scope: 'account:write',
      operator: true,
      receipt: 'all',
      sdk: 'signingKeys.rotate',
      errors: { 409: ['signing_key_too_new'] },
      audit: 'signing_key.rotated',
      summary: 'Rotate the signing keys',
      description:
        'The next key, which is already published, signs from now on; earlier signatures remain valid until they expire. With `now`, for keys that ' +
        'may have leaked, all keys are replaced and everything they signed becomes invalid: here immediately, on other servers within five minutes. 409 ' +
        'signing_key_too_new while other servers may not know the next key yet. Only for the operator.',
      body: KeyRotation,
      reply: KeyRotated,
      example: { body: { now: true } },
      handle: async ({ body: { now } }) => ({ kid: now ? await keys.replaceAll() : await keys.rotate(), replaced_all: now }),
    }),
    route('GET', '/.well-known/jwks.json', {
      root: true,
      scope: 'public',
      rate: 'document',
      summary: 'Get the public keys',
      description:
        'A JWK Set (RFC 7517) with the Ed25519 keys that identity tokens and credentials are signed with: the one in use, the next, and those ' +
        'whose signatures may still be valid. Pages of any origin may read it; it may be cached for five minutes.',
      document: true,
      reply: JwkSet,
      handle: async () => ({ keys: (await keys.published()).map(({ jwk }) => jwk) }),
    }),
  ]
}
