import type { Module, ModuleBasis } from '../module.ts'
import type { TokenSigner } from '../tokens/model.ts'
import type { Agents } from './agents.ts'
import { Documents } from './documents.ts'
import { Erc8004Links } from './erc8004.ts'
import { agentCreated, agentDeleted, agentUpdated } from './model.ts'
import { documentRoutes, erc8004Routes, routes } from './routes.ts'

interface Deps extends ModuleBasis {
  agents: Agents
  signer: Pick<TokenSigner, 'published'>
}

export function agentsModule(deps: Deps): Module {
  const links = new Erc8004Links(deps)
  const documents = new Documents({ ...deps, links })
  return {
    name: 'agents',
    events: [agentCreated, agentUpdated, agentDeleted],
    routes: [...routes(deps.agents), ...erc8004Routes(links), ...documentRoutes(documents)],
  }
}
