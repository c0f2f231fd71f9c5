import type { Basis } from '../basis.ts'
import type { AgentDirectory } from '../agents/model.ts'
import { iso } from '../core/clock.ts'
import { conflict } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { type Caller, makerOf } from '../core/scopes.ts'
import type { Identities } from '../identities/identities.ts'
import type { ReputationSource } from '../trust/model.ts'
import type { Bearers } from './bearers.ts'
import {
  type IdentityToken,
  oneAudience,
  type TokenInput,
  tokenIssued,
  tokenRevoked,
  type TokenSigner,
  type TokensRevoked,
} from './model.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'publicUrl'> {
  identities: Pick<Identities, 'row'>
  bearers: Bearers
  signer: TokenSigner
  agents: AgentDirectory
  reputations: () => ReputationSource
}

/** Issues identity tokens, and revokes them. */
export class Issuing {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Throws Fault conflict for a suspended identity, whose tokens would not verify. */
  async issue(caller: Caller, identityId: string, input: TokenInput): Promise<IdentityToken> {
    const { database, events, clock, identities, bearers, signer, agents, reputations, publicUrl } = this.#deps
    const audience = oneAudience(input) ?? publicUrl()
    const { expires_at: ends } = await identities.row(caller, identityId)
    const [known, reputation] = await Promise.all([agents.ofIdentity(identityId), reputations().of(identityId)])
    const issued = Math.floor(clock.now() / 1000)
    const latest = Math.min(caller.until, ends === null ? Infinity : Date.parse(ends))
    const expires = Math.min(issued + input.expires_in, Math.floor(latest / 1000))
    const id = newId('tok')
    const expires_at = iso(expires * 1000)
    const claims = await database.transaction(async (tx) => {
      const { account_id, status } = await identities.row(caller, identityId, tx)
      if (status === 'suspended') {
        throw conflict('A suspended identity cannot get tokens: make it active first.', { code: 'identity_suspended' })
      }
      const bearer = (await bearers.find(identityId, tx))!
      const proofs = await bearers.proofs(bearer, tx)
      const data = { id, identity_id: identityId, audience, expires_at, created_by: makerOf(caller) }
      await events.append(tx, tokenIssued, { account_id, identity_id: identityId, data })
      return { email: bearer.email, ...proofs, generation: bearer.generation }
    })
    const token = await signer.sign({
      iss: publicUrl(),
      sub: known?.agent.did ?? identityId,
      aud: audience,
      iat: issued,
      nbf: issued,
      exp: expires,
      jti: id,
      ...claims,
      ...(known ? { handle: known.agent.handle } : {}),
      reputation: { score: reputation.score, tier: reputation.tier },
    })
    return { token, expires_at }
  }

  /** Revokes every token issued until now: they fail immediately here. Other boxes do not query this one and use the expiry. */
  async revoke(caller: Caller, identityId: string): Promise<TokensRevoked> {
    const { database, events, clock, identities, bearers } = this.#deps
    return database.transaction(async (tx) => {
      const { account_id } = await identities.row(caller, identityId, tx)
      await bearers.revoke(tx, identityId)
      const data = { identity_id: identityId, revoked_at: iso(clock.now()) }
      await events.append(tx, tokenRevoked, { account_id, identity_id: identityId, data })
      return data
    })
  }
}
