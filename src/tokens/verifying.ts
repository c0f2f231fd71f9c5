import type { Basis } from '../basis.ts'
import { type AgentDirectory, agentOfDid } from '../agents/model.ts'
import type { Caller } from '../core/scopes.ts'
import type { ReputationSource } from '../trust/model.ts'
import type { Bearers } from './bearers.ts'
import { assertionKey, didOfHost, type DidWebLocation, placeOf } from './did-document.ts'
import type { Issuers } from './issuers.ts'
import { isSignedBy } from './jose.ts'
import { oneAudience, type TokenQuestion, type TokenVerdict, type Verified } from './model.ts'
import { checkClaims, InvalidToken, readToken, type TokenClaims } from './reading.ts'
import type { SigningKeys } from './signing-keys.ts'

interface Deps extends Pick<Basis, 'clock' | 'publicUrl'> {
  keys: Pick<SigningKeys, 'find'>
  bearers: Bearers
  issuers: Issuers
  agents: AgentDirectory
}

/** Verifies identity tokens: ours by our keys and the existing identities, those of other boxes by their DID documents. */
export async function judgeToken(
  deps: Deps,
  account: string,
  token: string,
  audience: string | undefined,
): Promise<TokenVerdict> {
  let claims: Record<string, unknown> | null = null
  try {
    const said = readToken(token)
    const check = (): void => checkClaims(said, deps.clock.now(), audience ?? deps.publicUrl())
    const own = said.iss === deps.publicUrl()
    // an expired or malformed token causes no fetch
    if (!own) check()
    const key = own ? await deps.keys.find(said.kid) : await keyOfOther(deps, account, said)
    if (key === undefined) throw new InvalidToken('unknown_key', 'Its issuer does not publish its key for this purpose.')
    if (!(await isSignedBy(token, key))) throw new InvalidToken('bad_signature', 'Its signature is not valid.')
    claims = said.claims
    check()
    return { valid: true, claims, ...(own ? await subjectOf(deps, said) : { identityId: null, agentId: null }) }
  } catch (error) {
    if (!(error instanceof InvalidToken)) throw error
    const { reason, message, temporary } = error
    return { valid: false, reason, message, temporary, claims }
  }
}

/** The subject of our token, if the identity exists and has this generation of tokens. */
async function subjectOf(
  { agents, bearers, publicUrl }: Deps,
  { sub, claims }: TokenClaims,
): Promise<{ identityId: string | null; agentId: string | null }> {
  const agentId = agentOfDid(publicUrl(), sub) ?? null
  const identityId = agentId === null ? sub : (await agents.byId(agentId))?.agent.identity_id
  const bearer = identityId === undefined ? undefined : await bearers.find(identityId)
  if (!bearer) throw new InvalidToken('unknown_subject', `The subject ${sub} does not exist here, or no longer.`)
  if (bearer.status === 'suspended') throw new InvalidToken('suspended', `${sub} is suspended.`)
  if (claims['generation'] !== bearer.generation) throw new InvalidToken('revoked', 'It was revoked.')
  return { identityId: bearer.id, agentId }
}

async function keyOfOther({ issuers }: Deps, account: string, said: TokenClaims): Promise<string | undefined> {
  const place = placeOfIssuer(said)
  const key = assertionKey(await issuers.document(account, place), place.did, said.kid)
  if (key !== undefined) return key
  // the key may have been published since
  const younger = await issuers.younger(account, place)
  return younger && assertionKey(younger, place.did, said.kid)
}

/** Which document has the key: that of the subject, or of the issuer for a subject without a DID. */
function placeOfIssuer({ iss, sub }: TokenClaims): DidWebLocation {
  const url = URL.parse(iss)
  if (url?.protocol !== 'https:' || url.origin !== iss) {
    throw new InvalidToken('wrong_issuer', 'Its issuer is neither this box nor an https origin, such as https://box.example.com.')
  }
  const place = placeOf(sub.startsWith('did:') ? sub : didOfHost(url.host))
  if (place?.host !== url.host)
    throw new InvalidToken('wrong_subject', `${iss} cannot issue tokens for ${sub}, which belongs to another host.`)
  return place
}

interface VerifyDeps extends Deps {
  reputations: () => ReputationSource
}

type Believed = Extract<TokenVerdict, { valid: true }>

/** Answers the verification endpoint: whether a token is valid, and its subject. */
export async function verifyToken(deps: VerifyDeps, caller: Caller, question: TokenQuestion): Promise<Verified> {
  const verdict = await judgeToken(deps, caller.account_id, question.token, oneAudience(question))
  const claims = verdict.claims as Verified['claims']
  if (!verdict.valid) {
    const { reason, message, temporary } = verdict
    return { valid: false, reason, message, temporary, claims, identity: null, agent: null, reputation: null }
  }
  return { valid: true, reason: null, message: null, temporary: false, claims, ...(await aboutSubject(deps, caller, verdict)) }
}

async function aboutSubject(
  { bearers, agents, reputations }: VerifyDeps,
  caller: Caller,
  verdict: Believed,
): Promise<Pick<Verified, 'identity' | 'agent' | 'reputation'>> {
  const { identityId, agentId } = verdict
  const sub = String(verdict.claims['sub'])
  if (identityId === null) {
    const agent = sub.startsWith('did:') ? { did: sub, id: null, handle: null, display_name: null } : null
    return { identity: null, agent, reputation: null }
  }
  const [bearer, known] = await Promise.all([bearers.find(identityId), agentId === null ? undefined : agents.byId(agentId)])
  // deleted since the token was verified
  if (!bearer) return { identity: null, agent: null, reputation: null }
  const mine = bearer.account_id === caller.account_id && (caller.identity_id ?? bearer.id) === bearer.id
  const { score, tier } = await reputations().of(identityId)
  return {
    identity: { id: mine ? bearer.id : null, email: bearer.email },
    agent: known
      ? { did: known.agent.did, id: known.agent.id, handle: known.agent.handle, display_name: known.agent.display_name }
      : null,
    reputation: { score, tier },
  }
}
