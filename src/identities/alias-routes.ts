import { Deleted, Page, Paging } from '../core/shapes.ts'
import { Domain } from '../domains/model.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Aliases } from './aliases.ts'
import { Alias, AliasChange, DomainChange, NewAlias } from './model.ts'

const route = routeOf('Domains')

export function aliasRoutes(aliases: Aliases): AnyRoute[] {
  return [
    route('PATCH', '/domains/:id', {
      scope: 'account:write',
      sdk: 'domains.update',
      audit: 'domain.changed',
      summary: 'Change a domain',
      description:
        'catch_all names the identity that receives mail for every unassigned address of the domain; with null such mail is rejected (550 5.1.1). It never covers formerly used addresses and those reserved for the operator.',
      body: DomainChange,
      reply: Domain,
      example: { body: { catch_all: null } },
      handle: ({ caller, params, body }) => aliases.changeDomain(caller, params.id, body),
    }),
    route('POST', '/domains/:id/aliases', {
      scope: 'account:write',
      sdk: 'aliases.create',
      errors: { 403: ['plan_limit_reached'], 409: ['conflict', 'domain_not_verified'] },
      audit: 'alias.created',
      summary: 'Add an alias',
      description:
        'An additional address of the domain: its mail goes to the identity, with the alias as to. A conflict with param local_part if the address was used before or is reserved; with code domain_not_verified until the domain is verified.',
      body: NewAlias,
      reply: Alias,
      status: 201,
      location: (alias) => `/v1/domains/${alias.domain_id}/aliases/${alias.id}`,
      example: { body: { local_part: 'sales', identity_id: 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a' } },
      handle: ({ caller, params, body }) => aliases.create(caller, params.id, body),
    }),
    route('GET', '/domains/:id/aliases', {
      scope: 'account:read',
      sdk: 'aliases.list',
      summary: 'List aliases',
      description: 'Newest first.',
      query: Paging,
      reply: Page(Alias),
      handle: ({ caller, params, query }) => aliases.list(caller, params.id, query),
    }),
    route('GET', '/domains/:id/aliases/:alias_id', {
      scope: 'account:read',
      sdk: 'aliases.get',
      summary: 'Get an alias',
      reply: Alias,
      handle: ({ caller, params }) => aliases.get(caller, params.id, params.alias_id),
    }),
    route('PATCH', '/domains/:id/aliases/:alias_id', {
      scope: 'account:write',
      sdk: 'aliases.update',
      audit: 'alias.changed',
      summary: 'Change an alias',
      description: 'New mail goes to the other identity; earlier mail stays where it is.',
      body: AliasChange,
      reply: Alias,
      handle: ({ caller, params, body }) => aliases.update(caller, params.id, params.alias_id, body),
    }),
    route('DELETE', '/domains/:id/aliases/:alias_id', {
      scope: 'account:write',
      sdk: 'aliases.delete',
      audit: 'alias.deleted',
      summary: 'Delete an alias',
      description:
        'Mail to it is rejected (550 5.1.1), even if the domain has a catch-all. Its address stays with the account, which can use it again.',
      reply: Deleted,
      handle: ({ caller, params }) => aliases.remove(caller, params.id, params.alias_id),
    }),
  ]
}
