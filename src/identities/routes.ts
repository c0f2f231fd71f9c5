import { Deleted, Page } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Identities } from './identities.ts'
import { scopes } from '../core/scopes.ts'
import { Identity, IdentityChange, IdentityFilter, NewIdentity, ReducedIdentity, WhoAmI } from './model.ts'

const route = routeOf('Identities')

export function routes(identities: Identities): AnyRoute[] {
  return [
    route('GET', '/whoami', {
      scope: [...scopes],
      sdk: 'account.whoami',
      whileStopped: true,
      summary: 'Get the caller',
      description:
        'What the key or session is and may do: its scopes, its rate limit, when it ends, and the identity that it is bound to, whole, whatever its scopes are.',
      reply: WhoAmI,
      handle: ({ caller }) => identities.whoami(caller),
    }),
    route('POST', '/identities', {
      scope: 'identities:write',
      sdk: 'identities.create',
      errors: {
        403: ['plan_limit_reached'],
        404: ['not_found'],
        409: ['conflict', 'domain_not_verified', 'too_many_addresses', 'sms_provider_error'],
      },
      audit: 'identity.created',
      summary: 'Create an identity',
      description:
        'All fields are optional. The address is derived from the name and is permanent. With expires_at it is deleted at that time.',
      body: NewIdentity,
      reply: Identity,
      status: 201,
      location: (identity) => `/v1/identities/${identity.id}`,
      example: { body: { name: 'Ada', metadata: { team: 'research' } } },
      handle: ({ caller, body }) => identities.create(caller, body),
    }),
    route('GET', '/identities', {
      scope: 'identities:read',
      sdk: 'identities.list',
      summary: 'List identities',
      description: 'Newest first, in the reduced form.',
      query: IdentityFilter,
      reply: Page(ReducedIdentity),
      handle: ({ caller, query }) => identities.list(caller, query),
    }),
    route('GET', '/identities/:id', {
      scope: 'identities:read',
      sdk: 'identities.get',
      summary: 'Get an identity',
      reply: Identity,
      handle: ({ caller, params }) => identities.get(caller, params.id),
    }),
    route('PATCH', '/identities/:id', {
      scope: 'identities:write',
      sdk: 'identities.update',
      errors: { 403: ['beyond_own'], 409: ['conflict'] },
      audit: 'identity.changed',
      summary: 'Change an identity',
      description:
        'metadata is merged; a null removes a key. Mail to a suspended identity is deferred (450 4.2.1). A key that is bound to it cannot make expires_at later, nor lift a suspension (forbidden, code beyond_own).',
      body: IdentityChange,
      reply: Identity,
      example: { body: { metadata: { team: 'sales' } } },
      handle: ({ caller, params, body }) => identities.update(caller, params.id, body),
    }),
    route('DELETE', '/identities/:id', {
      scope: 'identities:write',
      sdk: 'identities.delete',
      audit: 'identity.deleted',
      summary: 'Delete an identity',
      description:
        'Its address is never reused; mail to it is rejected with 550 5.1.1. Its messages are no longer available, and are purged after retention.trash. ' +
        'Cards, logins, one-time passwords and unsent messages cannot be used from then on; they are cancelled and erased in batches, the first 50 cards, logins and passwords with the call.',
      reply: Deleted,
      handle: ({ caller, params }) => identities.remove(caller, params.id),
    }),
  ]
}
