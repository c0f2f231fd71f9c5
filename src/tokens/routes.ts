import { route } from '../http/route.ts'
import type { AnyRoute } from '../http/route.ts'
import { JwkSet } from './model.ts'
import type { Signer } from './model.ts'

const tag = 'Identity tokens'

export function routes(signer: Signer): AnyRoute[] {
  return [
    route({
      method: 'GET',
      path: '/.well-known/jwks.json',
      root: true,
      scope: 'public',
      rate: 'document',
      tag,
      summary: 'Get the public keys',
      description:
        'A JWK Set (RFC 7517) with the Ed25519 keys that identity tokens and credentials are signed with: the one in use, the next, and those ' +
        'whose signatures may still be valid. Pages of any origin may read it; it may be kept for five minutes.',
      document: true,
      reply: JwkSet,
      handle: async () => ({ keys: (await signer.published()).map(({ jwk }) => jwk) }),
    }),
  ]
}
