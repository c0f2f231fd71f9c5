import type { AgentDirectory } from '../agents/model.ts'
import type { Caller } from '../core/scopes.ts'
import type { ReputationSource } from '../trust/model.ts'
import type { Bearers } from './bearers.ts'
import { oneAudience, type TokenJudge, type TokenQuestion, type TokenVerdict, type Verified } from './model.ts'

interface Deps {
  judge: TokenJudge
  bearers: Bearers
  agents: AgentDirectory
  reputations: () => ReputationSource
}

type Believed = Extract<TokenVerdict, { valid: true }>

/** Answers the verification endpoint: whether a token is valid, and its subject. */
export async function verifyToken(deps: Deps, caller: Caller, question: TokenQuestion): Promise<Verified> {
  const verdict = await deps.judge(caller.account_id, question.token, oneAudience(question))
  const claims = verdict.claims as Verified['claims']
  if (!verdict.valid) {
    const { reason, message, temporary } = verdict
    return { valid: false, reason, message, temporary, claims, identity: null, agent: null, reputation: null }
  }
  return { valid: true, reason: null, message: null, temporary: false, claims, ...(await aboutSubject(deps, caller, verdict)) }
}

async function aboutSubject(
  { bearers, agents, reputations }: Deps,
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
