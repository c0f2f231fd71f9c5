import { Deleted, Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Agents } from './agents.ts'
import { AgentCard, DidDocument, DomainRegistrations, RegistrationFile } from './document-shapes.ts'
import type { Documents } from './documents.ts'
import { Agent, AgentChange, AgentFilter, NewAgent } from './model.ts'
import { Erc8004Link, NewErc8004Link } from './erc8004-shapes.ts'
import type { Erc8004Links } from './erc8004.ts'

const route = routeOf('Agents')

export function routes(agents: Agents): AnyRoute[] {
  return [
    route('POST', '/agents', {
      scope: 'identities:write',
      sdk: 'agents.create',
      errors: { 403: ['plan_limit_reached'], 404: ['not_found'], 409: ['conflict', 'too_many_handles'] },
      audit: 'agent.created',
      summary: 'Create an agent',
      description:
        'The public profile of an identity, with which recipients can look up a sender. Its name, description, avatar, links and e-mail address ' +
        'are public from now on.',
      body: NewAgent,
      reply: Agent,
      status: 201,
      location: (agent) => `/v1/agents/${agent.id}`,
      example: {
        body: {
          identity_id: 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a',
          description: 'Books tables.',
          capabilities: ['reservations'],
          links: [{ name: 'web', url: 'https://ada.example' }],
        },
      },
      handle: ({ caller, body }) => agents.create(caller, body),
    }),
    route('GET', '/agents', {
      scope: 'identities:read',
      sdk: 'agents.list',
      summary: 'List agents',
      description: 'Newest first. With `handle` only the agent with that handle, if it belongs to this account.',
      query: AgentFilter,
      reply: Page(Agent),
      handle: ({ caller, query }) => agents.list(caller, query),
    }),
    route('GET', '/agents/:id', {
      scope: 'identities:read',
      sdk: 'agents.get',
      summary: 'Get an agent',
      reply: Agent,
      handle: ({ caller, params }) => agents.get(caller, params.id),
    }),
    route('PATCH', '/agents/:id', {
      scope: 'identities:write',
      sdk: 'agents.update',
      errors: { 409: ['conflict', 'too_many_handles'] },
      audit: 'agent.changed',
      summary: 'Change an agent',
      description: 'A former handle remains reserved for the agent: it still resolves to it, and the agent can return to it.',
      body: AgentChange,
      reply: Agent,
      example: { body: { description: 'Books tables and taxis.', metadata: { city: 'London' } } },
      handle: ({ caller, params, body }) => agents.update(caller, params.id, body),
    }),
    route('DELETE', '/agents/:id', {
      scope: 'identities:write',
      sdk: 'agents.delete',
      audit: 'agent.deleted',
      summary: 'Delete an agent',
      description: 'Its documents are removed, and its DID no longer resolves. The identity stays; its handles are never reused.',
      reply: Deleted,
      handle: ({ caller, params }) => agents.remove(caller, params.id),
    }),
  ]
}

export function erc8004Routes(links: Erc8004Links): AnyRoute[] {
  return [
    route('POST', '/agents/:id/erc8004', {
      scope: 'identities:write',
      sdk: 'agents.addErc8004',
      errors: { 409: ['conflict', 'too_many_links'] },
      audit: 'agent_link.created',
      summary: 'Link an agent to ERC-8004',
      description:
        'States that the agent is this token of an on-chain identity registry, also in the registration file. The other half, the token’s ' +
        'agentURI, must be set by the owner of the token.',
      body: NewErc8004Link,
      reply: Erc8004Link,
      status: 201,
      example: { body: { chain_id: 1, registry: '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432', token_id: '22' } },
      handle: ({ caller, params, body }) => links.create(caller, params.id, body),
    }),
    route('GET', '/agents/:id/erc8004', {
      scope: 'identities:read',
      sdk: 'agents.erc8004',
      summary: 'List ERC-8004 links',
      query: Paging,
      reply: Page(Erc8004Link),
      handle: ({ caller, params, query }) => links.list(caller, params.id, query),
    }),
    route('DELETE', '/agents/:id/erc8004/:link_id', {
      scope: 'identities:write',
      sdk: 'agents.removeErc8004',
      audit: 'agent_link.deleted',
      summary: 'Remove an ERC-8004 link',
      reply: Deleted,
      handle: ({ caller, params }) => links.remove(caller, params.id, params.link_id),
    }),
  ]
}

const publicRoute = routeOf('Public documents')

const common = { scope: 'public', rate: 'document', document: true } as const

export function documentRoutes(documents: Documents): AnyRoute[] {
  return [
    publicRoute('GET', '/agents/:id/did.json', {
      ...common,
      summary: 'Resolve an agent’s DID',
      description: 'The document of `did:web:<host>:v1:agents:<id>`. The document of a suspended agent asserts nothing.',
      reply: DidDocument,
      handle: ({ params }) => documents.did(params.id),
    }),
    publicRoute('GET', '/agents/:id/registration.json', {
      ...common,
      summary: 'Get an agent’s registration file',
      description: 'ERC-8004: the document for the agentURI of its token.',
      reply: RegistrationFile,
      handle: ({ params }) => documents.registration(params.id),
    }),
    publicRoute('GET', '/agents/:id/agent-card.json', {
      ...common,
      summary: 'Get an agent’s card',
      description: 'A2A: a description of the agent and its skills. It is contacted by mail.',
      reply: AgentCard,
      handle: ({ params }) => documents.card(params.id),
    }),
    publicRoute('GET', '/.well-known/did.json', {
      ...common,
      root: true,
      summary: 'Resolve the box’s DID',
      description: 'The document of `did:web:<host>`.',
      reply: DidDocument,
      handle: () => documents.boxDid(),
    }),
    publicRoute('GET', '/.well-known/agent-registration.json', {
      ...common,
      root: true,
      summary: 'List the registrations of this domain',
      description: 'ERC-8004 endpoint domain verification: the registrations of the active agents of the box.',
      reply: DomainRegistrations,
      handle: () => documents.registrations(),
    }),
    publicRoute('GET', '/.well-known/agent-card.json', {
      ...common,
      root: true,
      summary: 'Get the box’s card',
      description: 'A2A: a description of the box and the URL of its API.',
      reply: AgentCard,
      handle: async () => documents.boxCard(),
    }),
  ]
}
