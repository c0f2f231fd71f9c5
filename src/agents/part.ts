import type { Clock } from '../core/clock.ts'
import type { Cursors } from '../core/cursor.ts'
import type { EventLog } from '../events/log.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Part } from '../part.ts'
import type { Database } from '../store/database.ts'
import type { Signer } from '../tokens/model.ts'
import type { Agents } from './agents.ts'
import { documentRoutes } from './document-routes.ts'
import { Documents } from './documents.ts'
import { erc8004Routes } from './erc8004-routes.ts'
import { Erc8004Links } from './erc8004.ts'
import { agentCreated, agentDeleted, agentUpdated } from './model.ts'
import { routes } from './routes.ts'

interface Needs {
  database: Database
  events: EventLog
  clock: Clock
  cursors: Cursors
  agents: Agents
  signer: Pick<Signer, 'published'>
  publicUrl: () => string
  version: string
}

/** Agents: the public faces of identities, and what strangers may read of them. */
export class AgentsPart implements Part {
  readonly name = 'agents'
  readonly events = [agentCreated, agentUpdated, agentDeleted]
  readonly routes: AnyRoute[]

  constructor(needs: Needs) {
    const links = new Erc8004Links(needs)
    const documents = new Documents({ ...needs, links })
    this.routes = [...routes(needs.agents), ...erc8004Routes(links), ...documentRoutes(documents)]
  }
}
