import type { AgentDirectory } from '../agents/model.ts'
import type { EventType } from '../events/model.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Identities } from '../identities/identities.ts'
import type { ModuleBasis, Module } from '../module.ts'
import type { DidResolver, TokenSigner, TokenJudge } from '../tokens/model.ts'
import { Counting } from './counting.ts'
import { issueCredential } from './credentials.ts'
import { Evaluations } from './evaluations.ts'
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
export class TrustModule implements Module {
  readonly name = 'trust'
  readonly events: EventType[] = [reputationUpdated, reputationReported]
  readonly routes: AnyRoute[]
  readonly counting: Counting

  constructor(deps: Deps) {
    const { reputations } = deps
    const subjects = new Subjects(deps)
    const reports = new TrustReports({ ...deps, subjects })
    const evaluations = new Evaluations({ ...deps, subjects, reports })
    this.counting = new Counting(deps)
    this.routes = routes({ reputations, reports, evaluations, issue: (caller, id) => issueCredential(deps, caller, id) })
  }

  start(): Promise<void> {
    return this.counting.start()
  }

  stop(): Promise<void> {
    return this.counting.stop()
  }
}
