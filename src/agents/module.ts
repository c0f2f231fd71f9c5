import type { AnyRoute } from '../http/route.ts'
import type { Module, ModuleBasis } from '../module.ts'
import type { TokenSigner } from '../tokens/model.ts'
import type { Agents } from './agents.ts'
import { documentRoutes } from './document-routes.ts'
import { Documents } from './documents.ts'
import { erc8004Routes, routes } from './routes.ts'
import { Erc8004Links } from './erc8004.ts'
import { agentCreated, agentDeleted, agentUpdated } from './model.ts'

interface Deps extends ModuleBasis {
  agents: Agents
  signer: Pick<TokenSigner, 'published'>
}

/** Agents: the public profiles of identities, and their public documents. */
export class AgentsModule implements Module {
  readonly name = 'agents'
  readonly events = [agentCreated, agentUpdated, agentDeleted]
  readonly routes: AnyRoute[]

  constructor(deps: Deps) {
    const links = new Erc8004Links(deps)
    const documents = new Documents({ ...deps, links })
    this.routes = [...routes(deps.agents), ...erc8004Routes(links), ...documentRoutes(documents)]
  }
}
