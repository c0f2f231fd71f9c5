import type { Part } from '../part.ts'
import type { Agents } from './agents.ts'
import { agentCreated, agentDeleted, agentUpdated } from './model.ts'
import { routes } from './routes.ts'

/** Agents: the public faces of identities. */
export function agentsPart(agents: Agents): Part {
  return { name: 'agents', routes: routes(agents), events: [agentCreated, agentUpdated, agentDeleted] }
}
