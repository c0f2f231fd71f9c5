import { Deleted, Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import { Erc8004Link, NewErc8004Link } from './erc8004-shapes.ts'
import type { Erc8004Links } from './erc8004.ts'

const route = routeOf('Agents')

export function erc8004Routes(links: Erc8004Links): AnyRoute[] {
  return [
    route('POST', '/agents/:id/erc8004', {
      scope: 'identities:write',
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
      summary: 'List ERC-8004 links',
      query: Paging,
      reply: Page(Erc8004Link),
      handle: ({ caller, params, query }) => links.list(caller, params.id, query),
    }),
    route('DELETE', '/agents/:id/erc8004/:link_id', {
      scope: 'identities:write',
      summary: 'Remove an ERC-8004 link',
      reply: Deleted,
      handle: ({ caller, params }) => links.remove(caller, params.id, params.link_id),
    }),
  ]
}
