import * as z from 'zod'
import { Id, Json, Line, Paging, Timestamp } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'
import { Metadata, Name } from '../identities/model.ts'

const Handle = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9][a-z0-9-]{1,38}$/, { error: 'must be 2 to 39 of a-z, 0-9 and hyphen, beginning with a letter or digit' })

const Description = z
  .string()
  .trim()
  .max(2000)
  // bidirectional control characters could disguise a text
  .refine((text) => !/[\p{Cs}\u202a-\u202e\u2066-\u2069]/u.test(text) && !/\p{Cc}/u.test(text.replaceAll('\n', '')), {
    error: 'must be text without control characters other than line breaks',
  })

const PublicUrl = z.string().max(2048).refine(isPublicUrl, { error: 'must be an https:// URL without a user name or password' })

const Capabilities = z
  .array(Line(64))
  .max(50)
  .transform((list) => [...new Set(list)])
  .meta({ override: { type: 'array', items: { type: 'string', maxLength: 64 }, maxItems: 50 } })

const Links = z.array(z.strictObject({ name: Name, url: PublicUrl })).max(20)

/** The public profile of an identity: public data, and how others can verify it. */
export const Agent = z
  .object({
    id: Id('agent'),
    identity_id: Id('ident'),
    handle: z.string().meta({ description: 'unique on this box, never reused' }),
    display_name: z.string(),
    description: z.string().nullable(),
    avatar_url: z.string().nullable(),
    capabilities: z.array(z.string()),
    links: z.array(z.object({ name: z.string(), url: z.string() })),
    metadata: z.record(z.string(), Json),
    did: z.string().meta({ description: 'did:web, resolved at /v1/agents/{id}/did.json' }),
    status: z.enum(['active', 'suspended']).meta({ description: 'the status of its identity' }),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Agent' })
export type Agent = z.output<typeof Agent>

export const NewAgent = z
  .strictObject({
    identity_id: Id('ident').meta({ description: 'the identity of the agent; an identity has at most one agent' }),
    handle: Handle.optional().meta({
      description:
        '2 to 39 of a-z, 0-9 and hyphen, in either case; unique on this box, never reused. Derived from the identity’s name if omitted',
    }),
    display_name: Name.optional().meta({ description: 'the identity’s name if omitted' }),
    description: Description.nullable().optional().meta({ description: 'its purpose, at most 2000 characters; public' }),
    avatar_url: PublicUrl.nullable().optional(),
    capabilities: Capabilities.optional().meta({ description: 'its capabilities, as free text' }),
    links: Links.optional().meta({ description: 'links to more information; https only' }),
    metadata: Metadata.optional().meta({ description: 'free-form, at most 16 KiB; not public' }),
  })
  .meta({ id: 'NewAgent' })
export type NewAgent = z.output<typeof NewAgent>

export const AgentChange = z
  .strictObject({
    handle: Handle.optional().meta({ description: 'the previous handle remains reserved for the agent, which can return to it' }),
    display_name: Name.optional(),
    description: Description.nullable().optional(),
    avatar_url: PublicUrl.nullable().optional(),
    capabilities: Capabilities.optional().meta({ description: 'replaces the list' }),
    links: Links.optional().meta({ description: 'replaces the list' }),
    metadata: z
      .record(z.string().min(1).max(128), Json)
      .optional()
      .meta({ description: 'merged; null removes a key (RFC 7396)' }),
  })
  .meta({ id: 'AgentChange' })
export type AgentChange = z.output<typeof AgentChange>

export const AgentFilter = z.strictObject({
  ...Paging.shape,
  handle: Handle.optional().meta({ description: 'the agent with this handle, present or former' }),
  identity_id: Id('ident').optional(),
})
export type AgentFilter = z.output<typeof AgentFilter>

export const AgentGone = z.object({
  id: Id('agent'),
  identity_id: Id('ident'),
  handle: z.string(),
  did: z.string(),
  status: z.literal('deleted'),
})

export const agentCreated = eventType('agent.created', ['identities:read'], 'An agent was created.', Agent)
export const agentUpdated = eventType('agent.updated', ['identities:read'], 'An agent or its links were changed.', Agent)
export const agentDeleted = eventType(
  'agent.deleted',
  ['identities:read'],
  'An agent was deleted, alone or with its identity.',
  AgentGone,
)

export interface KnownAgent {
  account_id: string
  agent: Agent
}

/** Looks up agents for other modules; deleted agents, and agents of deleted identities, are not found. */
export interface AgentDirectory {
  ofIdentity(identityId: string): Promise<KnownAgent | undefined>
  byId(id: string): Promise<KnownAgent | undefined>
  byHandle(handle: string): Promise<KnownAgent | undefined>
}

/** `did:web:example.com%3A8443` for `https://example.com:8443` (did:web method specification, section 3.1): the box itself. */
export function boxDid(publicUrl: string): string {
  return `did:web:${encodeURIComponent(new URL(publicUrl).host)}`
}

/** The DID of an agent of the box at this URL; it resolves to `/v1/agents/{id}/did.json`. */
export function agentDid(publicUrl: string, agentId: string): string {
  return `${boxDid(publicUrl)}:v1:agents:${agentId}`
}

/**
 * The canonical form of a DID: the host of a did:web in lower case without the default port, and without unneeded escapes. Undefined for
 * anything that is not a DID, or a DID with a path, query or fragment.
 */
export function canonicalDid(did: string): string | undefined {
  if (!/^did:[a-z0-9]+:[^\s#?/\\]+$/.test(did)) return undefined
  const [, method, encoded = '', ...path] = did.split(':')
  if (method !== 'web') return did
  const url = URL.parse(`https://${encoded.replaceAll(/%[0-9a-f]{2}/gi, unescaped)}`)
  if (url?.pathname !== '/' || url.host === '' || url.username !== '' || url.search !== '' || url.hash !== '') return undefined
  const host = url.host.replace(/\.(?=:|$)/, '')
  const steps = path.map((step) =>
    step.replaceAll(/%[0-9a-f]{2}/gi, (escape) => (/[\w.~-]/.test(unescaped(escape)) ? unescaped(escape) : escape.toUpperCase())),
  )
  return ['did:web', encodeURIComponent(host), ...steps].join(':')
}

/** True if a canonical DID is that of the box at this URL, or of one of its agents. */
export function isOfBox(publicUrl: string, did: string): boolean {
  return `${did}:`.startsWith(`${boxDid(publicUrl)}:`)
}

export function agentOfDid(publicUrl: string, did: string): string | undefined {
  const prefix = `${boxDid(publicUrl)}:v1:agents:`
  return did.startsWith(prefix) ? did.slice(prefix.length) : undefined
}

function isPublicUrl(text: string): boolean {
  const url = URL.parse(text)
  // the parser would remove invisible characters, and read a backslash as a slash
  return /^https:\/\/[^\s\p{C}\\]+$/iu.test(text) && url !== null && url.username === '' && url.password === ''
}

function unescaped(escape: string): string {
  return String.fromCharCode(Number.parseInt(escape.slice(1), 16))
}
