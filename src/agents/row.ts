import { sql } from '../store/database.ts'
import { type Agent, agentDid, type AgentGone } from './model.ts'
import type * as z from 'zod'

/** A row of `agents` with fields of its identity. */
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

export function toAgent(row: AgentRow, publicUrl: string): Agent {
  const { id, identity_id, handle, display_name, description, avatar_url, created_at, updated_at } = row
  return {
    id,
    identity_id,
    handle,
    display_name,
    description,
    avatar_url,
    capabilities: JSON.parse(row.capabilities) as string[],
    links: JSON.parse(row.links) as Agent['links'],
    metadata: JSON.parse(row.metadata) as Agent['metadata'],
    did: agentDid(publicUrl, id),
    status: row.identity_status === 'active' ? 'active' : 'suspended',
    created_at,
    updated_at,
  }
}

export function gone({ id, identity_id, handle }: AgentRow, publicUrl: string): z.output<typeof AgentGone> {
  return { id, identity_id, handle, did: agentDid(publicUrl, id), status: 'deleted' }
}
