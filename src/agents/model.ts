import * as z from 'zod'
import { Id, Timestamp } from '../core/shapes.ts'

/** The public face of an identity: what strangers may know of it, and how they tell it is who it says. */
export const Agent = z
  .object({
    id: Id('agent'),
    identity_id: Id('ident'),
    handle: z.string().meta({ description: 'unique on this box for ever' }),
    display_name: z.string(),
    description: z.string().nullable(),
    avatar_url: z.string().nullable(),
    capabilities: z.array(z.string()),
    links: z.array(z.object({ name: z.string(), url: z.string() })),
    metadata: z.record(z.string(), z.json()).meta({ override: { type: 'object', additionalProperties: true } }),
    did: z.string().meta({ description: 'did:web, resolved at /v1/agents/{id}/did.json' }),
    status: z.enum(['active', 'suspended']).meta({ description: 'as its identity is' }),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Agent' })
export type Agent = z.output<typeof Agent>

/** A living agent with the account it belongs to. */
export interface KnownAgent {
  account_id: string
  agent: Agent
}

/** Where other capabilities find agents; a deleted one, or one whose identity was deleted, is not there. */
export interface AgentDirectory {
  ofIdentity(identityId: string): Promise<KnownAgent | undefined>
  byId(id: string): Promise<KnownAgent | undefined>
  byHandle(handle: string): Promise<KnownAgent | undefined>
}

/** `did:web:example.com%3A8443` for `https://example.com:8443` (did:web method specification, section 3.1): the box itself. */
export function boxDid(publicUrl: string): string {
  return `did:web:${encodeURIComponent(new URL(publicUrl).host)}`
}

/** The DID of an agent of the box at this URL; it is resolved at `/v1/agents/{id}/did.json`. */
export function agentDid(publicUrl: string, agentId: string): string {
  return `${boxDid(publicUrl)}:v1:agents:${agentId}`
}

/** The id of the agent that a DID names, when it is one of the box at this URL. */
export function agentOfDid(publicUrl: string, did: string): string | undefined {
  const prefix = `${boxDid(publicUrl)}:v1:agents:`
  return did.startsWith(prefix) ? did.slice(prefix.length) : undefined
}
