import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Issuing } from './issuing.ts'
import { IdentityToken, JwkSet, KeyRotated, KeyRotation, TokenQuestion, TokensRevoked, TokenInput, Verified } from './model.ts'
import type { SigningKeys } from './signing-keys.ts'
import type { Verifying } from './verifying.ts'

const route = routeOf('Identity tokens')

export function routes({ keys, issuing, verifying }: { keys: SigningKeys; issuing: Issuing; verifying: Verifying }): AnyRoute[] {
  return [
    route('POST', '/identities/:id/token', {
      scope: 'identities:write',
      receipt: 'all',
      summary: 'Issue an identity token',
      description:
        'A short-lived JWT (EdDSA) that proves to one audience who this identity is: anybody can check it with the public keys of this box. ' +
        'Its subject is the DID of the agent, or the id of an identity that has none. A suspended identity gets none.',
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
      summary: 'Revoke identity tokens',
      description:
        'All that this identity has been given so far stop verifying here at once. Whoever checks them without asking this box believes them ' +
        'until they expire.',
      reply: TokensRevoked,
      handle: ({ caller, params }) => issuing.revoke(caller, params.id),
    }),
    route('POST', '/verify/token', {
      scope: 'identities:read',
      summary: 'Verify an identity token',
      description:
        'Of this box, or of another whose did:web document has the key (it is fetched, and kept for at most five minutes). A token that is not ' +
        'to be believed is an answer like any other: valid is false, and reason says why.',
      body: TokenQuestion,
      reply: Verified,
      example: { body: { token: 'eyJhbGciOiJFZERTQSJ9.e30.c2lnbmF0dXJl', audience: 'https://shop.example.com' } },
      handle: ({ caller, body, signal }) => verifying.verify(caller, body, signal),
    }),
    route('POST', '/signing-keys/rotate', {
      scope: 'account:write',
      operator: true,
      receipt: 'all',
      summary: 'Rotate the signing keys',
      description:
        'The next key, which is published already, signs from now on; what was signed before verifies until it expires. With `now`, for keys that ' +
        'others may have, all keys are replaced and whatever they signed is void: here at once, elsewhere within five minutes. 409 ' +
        'signing_key_too_new while others may not know the next key yet. For the operator alone.',
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
        'whose signatures may still be valid. Pages of any origin may read it; it may be kept for five minutes.',
      document: true,
      reply: JwkSet,
      handle: async () => ({ keys: (await keys.published()).map(({ jwk }) => jwk) }),
    }),
  ]
}
