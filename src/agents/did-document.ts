import type { PublishedKey } from '../tokens/model.ts'
import type { DidDocument } from './document-shapes.ts'

/** The subject of a DID document, without its keys. */
interface Subject {
  did: string
  alsoKnownAs: string[]
  services: { name: string; type: string; endpoint: string }[]
  /** True if signatures in this name are to be trusted. */
  trusted: boolean
}

const context = [
  'https://www.w3.org/ns/did/v1',
  'https://w3id.org/security/suites/jws-2020/v1',
  'https://w3id.org/security/multikey/v1',
]

/**
 * The DID document of the box or of one of its agents. It lists each key of the box twice, as JsonWebKey2020 named by its `kid` and as
 * Multikey. An untrusted subject gets no assertion method, so that its tokens fail elsewhere too.
 */
export function didDocument({ did, alsoKnownAs, services, trusted }: Subject, keys: readonly PublishedKey[]): DidDocument {
  const verificationMethod = keys.flatMap((key) => methods(did, key))
  const believed = trusted ? verificationMethod.map(({ id }) => id) : []
  return {
    '@context': context,
    id: did,
    alsoKnownAs,
    verificationMethod,
    authentication: believed,
    assertionMethod: believed,
    service: services.map(({ name, type, endpoint }) => ({ id: `${did}#${name}`, type, serviceEndpoint: endpoint })),
  }
}

function methods(did: string, { kid, jwk, multibase }: PublishedKey): DidDocument['verificationMethod'] {
  const { kty, crv, x, alg } = jwk
  return [
    { id: `${did}#${kid}`, type: 'JsonWebKey2020', controller: did, publicKeyJwk: { kty, crv, x, kid, alg } },
    { id: `${did}#${multibase}`, type: 'Multikey', controller: did, publicKeyMultibase: multibase },
  ]
}
