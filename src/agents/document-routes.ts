import { type AnyRoute, routeOf } from '../http/route.ts'
import { AgentCard, DidDocument, DomainRegistrations, RegistrationFile } from './document-shapes.ts'
import type { Documents } from './documents.ts'

const route = routeOf('Public documents')

const common = { scope: 'public', rate: 'document', document: true } as const

/** Public documents, readable by any origin. */
export function documentRoutes(documents: Documents): AnyRoute[] {
  return [
    route('GET', '/agents/:id/did.json', {
      ...common,
      summary: 'Resolve an agent’s DID',
      description: 'The document of `did:web:<host>:v1:agents:<id>`. The document of a suspended agent asserts nothing.',
      reply: DidDocument,
      handle: ({ params }) => documents.did(params.id),
    }),
    route('GET', '/agents/:id/registration.json', {
      ...common,
      summary: 'Get an agent’s registration file',
      description: 'ERC-8004: the document for the agentURI of its token.',
      reply: RegistrationFile,
      handle: ({ params }) => documents.registration(params.id),
    }),
    route('GET', '/agents/:id/agent-card.json', {
      ...common,
      summary: 'Get an agent’s card',
      description: 'A2A: a description of the agent and its skills. It is contacted by mail.',
      reply: AgentCard,
      handle: ({ params }) => documents.card(params.id),
    }),
    route('GET', '/.well-known/did.json', {
      ...common,
      root: true,
      summary: 'Resolve the box’s DID',
      description: 'The document of `did:web:<host>`.',
      reply: DidDocument,
      handle: () => documents.boxDid(),
    }),
    route('GET', '/.well-known/agent-registration.json', {
      ...common,
      root: true,
      summary: 'List the registrations of this domain',
      description: 'ERC-8004 endpoint domain verification: the registrations of the active agents of the box.',
      reply: DomainRegistrations,
      handle: () => documents.registrations(),
    }),
    route('GET', '/.well-known/agent-card.json', {
      ...common,
      root: true,
      summary: 'Get the box’s card',
      description: 'A2A: a description of the box and the URL of its API.',
      reply: AgentCard,
      handle: async () => documents.boxCard(),
    }),
  ]
}
