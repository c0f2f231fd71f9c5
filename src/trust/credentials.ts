import type { Basis } from '../basis.ts'
import { type AgentDirectory, boxDid } from '../agents/model.ts'
import { iso } from '../core/clock.ts'
import { conflict } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Identities } from '../identities/identities.ts'
import type { TokenSigner } from '../tokens/model.ts'
import type { Reputations } from './reputations.ts'

interface Deps extends Pick<Basis, 'clock' | 'publicUrl'> {
  identities: Identities
  agents: AgentDirectory
  reputations: Reputations
  signer: TokenSigner
}

/** The validity of a credential in seconds. */
const lifetime = 86_400

/** The second context defines every term that the first lacks (VC data model 2.0, 5.2). */
const contexts = ['https://www.w3.org/ns/credentials/v2', 'https://www.w3.org/ns/credentials/undefined-terms/v2']

/** A signed Verifiable Credential (VC data model 2.0) as a JWT (VC-JOSE-COSE 3.1.1). Throws Fault conflict for a suspended identity. */
export async function issueCredential(
  { clock, identities, agents, reputations, signer, publicUrl }: Deps,
  caller: Caller,
  identityId: string,
): Promise<{ credential: string; expires_at: string }> {
  const { status, email } = await identities.row(caller, identityId)
  if (status === 'suspended')
    throw conflict('The identity is suspended: no credential is issued for it.', { code: 'identity_suspended' })
  const agent = (await agents.ofIdentity(identityId))?.agent
  const { score, tier, updated_at } = await reputations.of(identityId)
  const from = Math.floor(clock.now() / 1000)
  const until = from + lifetime
  const issuer = boxDid(publicUrl())
  // a subject is named by a URL: without an agent it has no DID
  const id = agent?.did ?? `${publicUrl()}/v1/identities/${identityId}`
  const credential = await signer.sign(
    {
      '@context': contexts,
      type: ['VerifiableCredential', 'ReputationCredential'],
      issuer,
      validFrom: iso(from * 1000),
      validUntil: iso(until * 1000),
      credentialSubject: { id, email, ...(agent ? { handle: agent.handle } : {}), reputation: { score, tier, updated_at } },
      iss: issuer,
      sub: id,
      iat: from,
      nbf: from,
      exp: until,
    },
    'vc+jwt',
  )
  return { credential, expires_at: iso(until * 1000) }
}
