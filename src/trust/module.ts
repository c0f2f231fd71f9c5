import type { AgentDirectory } from '../agents/model.ts'
import type { Identities } from '../identities/identities.ts'
import type { ModuleBasis, Module } from '../module.ts'
import type { DidResolver, TokenSigner, TokenJudge } from '../tokens/model.ts'
import { Counting } from './counting.ts'
import { issueCredential } from './credentials.ts'
import { evaluate } from './evaluations.ts'
import { reputationReported, reputationUpdated } from './model.ts'
import { TrustReports } from './reports.ts'
import type { Reputations } from './reputations.ts'
import { routes } from './routes.ts'
import { Subjects } from './subjects.ts'

interface Deps extends ModuleBasis {
  identities: Identities
  agents: AgentDirectory
  reputations: Reputations
  signer: TokenSigner
  judge: TokenJudge
  resolver: DidResolver
}

/** Reputation: counted from the log and from reports of others, and used to evaluate subjects. */
export function trustModule(deps: Deps): Module & { counting: Counting } {
  const { reputations } = deps
  const subjects = new Subjects(deps)
  const reports = new TrustReports({ ...deps, subjects })
  const counting = new Counting(deps)
  return {
    name: 'trust',
    events: [reputationUpdated, reputationReported],
    counting,
    routes: routes({
      reputations,
      reports,
      evaluate: (caller, question) => evaluate({ ...deps, subjects, reports }, caller, question),
      issue: (caller, id) => issueCredential(deps, caller, id),
    }),
    start: () => counting.start(),
    stop: () => counting.stop(),
  }
}
