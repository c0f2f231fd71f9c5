import { picked } from '../core/shapes.ts'
import { sql } from '../store/database.ts'
import { Agent, agentDid, type AgentGone } from './model.ts'
import type * as z from 'zod'

export interface AgentRow extends Omit<Agent, 'capabilities' | 'links' | 'metadata' | 'did' | 'status'> {
  seq: number
  account_id: string
  capabilities: string
  links: string
  metadata: string
  identity_status: 'active' | 'suspended' | 'deleted'
  email: string
}

/** Every agent, with the status and the address of its identity; conditions may name the columns of `agents`. */
export const agentColumns = sql`agents.*, (SELECT status FROM identities WHERE identities.id = agents.identity_id) AS identity_status,
  (SELECT email FROM identities WHERE identities.id = agents.identity_id) AS email`

/** The bytes of the texts of a row whose length its account chooses. */
export const agentOctets = sql`octet_length(capabilities) + octet_length(links) + octet_length(metadata) + coalesce(octet_length(description), 0)
  + coalesce(octet_length(avatar_url), 0)`

export function toAgent(row: AgentRow, publicUrl: string): Agent {
  return picked(Agent, {
    ...row,
    capabilities: JSON.parse(row.capabilities) as string[],
    links: JSON.parse(row.links) as Agent['links'],
    metadata: JSON.parse(row.metadata) as Agent['metadata'],
    did: agentDid(publicUrl, row.id),
    status: row.identity_status === 'active' ? ('active' as const) : ('suspended' as const),
  })
}

export function gone({ id, identity_id, handle }: AgentRow, publicUrl: string): z.output<typeof AgentGone> {
  return { id, identity_id, handle, did: agentDid(publicUrl, id), status: 'deleted' }
}
