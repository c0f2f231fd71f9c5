import { Page } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Keys } from './keys.ts'
import { ApiKey, ApiKeyFilter, ApiKeyWithSecret, KeyRevoked, NewApiKey, Revocation, Rotation, Subscription } from './model.ts'
import type { Plan } from './plan.ts'

const route = routeOf('API keys')

export function routes(keys: Keys): AnyRoute[] {
  return [
    route('POST', '/api-keys', {
      scope: 'account:write',
      sdk: 'apiKeys.create',
      errors: {
        403: ['plan_limit_reached', 'beyond_own', 'missing_scope', 'too_many_generations'],
        404: ['not_found'],
        409: ['too_many_keys'],
      },
      audit: { action: 'key.created', detail: ({ scopes }: NewApiKey) => ({ scopes: scopes ?? 'all' }) },
      summary: 'Create an API key',
      description:
        'The key is returned only in this response. A key can grant only its own scopes, rate limit and lifetime or less, and a bound ' +
        'key can create only keys bound to the same identity. Calls of keys created by a key with a rate_limit count against that limit too. ' +
        'An account has at most 10,000 keys (conflict, code too_many_keys).',
      body: NewApiKey,
      reply: ApiKeyWithSecret,
      status: 201,
      secret: true,
      example: { body: { label: 'mail reader', scopes: ['emails:read'] } },
      handle: ({ caller, body }) => keys.create(caller, body),
    }),
    route('GET', '/api-keys', {
      scope: 'account:read',
      sdk: 'apiKeys.list',
      summary: 'List API keys',
      description: 'Keys are masked: only key_prefix is shown.',
      query: ApiKeyFilter,
      reply: Page(ApiKey),
      handle: ({ caller, query }) => keys.list(caller, query),
    }),
    route('POST', '/api-keys/:id/rotate', {
      scope: 'account:write',
      receipt: ['key', 'key_prefix', 'expires_at'],
      sdk: 'apiKeys.rotate',
      errors: { 403: ['beyond_own', 'missing_scope', 'former_secret', 'too_many_rotators'] },
      audit: 'key.rotated',
      summary: 'Rotate the secret of a key',
      description:
        'The former secret works for another grace_seconds, like a key that expires then: nothing created with it lasts longer, and it cannot rotate or revoke keys ' +
        '(forbidden, code former_secret). What the key created before stays. The key ends with the key that rotated it, and with the ancestors of that key, until a key descended ' +
        'from neither rotates it again. At most 4 related keys may rotate one key (forbidden, code too_many_rotators).',
      body: Rotation,
      reply: ApiKeyWithSecret,
      secret: true,
      handle: ({ caller, params, body }) => keys.rotate(caller, params.id, body.grace_seconds),
    }),
    route('DELETE', '/api-keys/:id', {
      scope: 'account:write',
      sdk: 'apiKeys.revoke',
      errors: { 403: ['former_secret'], 409: ['last_key'] },
      audit: 'key.revoked',
      summary: 'Revoke an API key',
      description:
        'Further calls with it get 401. What it created ends too: keys, including those it rotated, webhooks, including those whose URL it ' +
        'ever changed, running jobs, export files and scheduled e-mails; and what those keys created. A key that an unrelated key has rotated since is excepted, once the secret ' +
        'before it has expired; what was created with that secret is not. The key that makes this call stays. With keep=true all of it stays, and ' +
        'names the key in created_by. The last key with account:write and without expiry cannot be revoked: conflict, code last_key.',
      query: Revocation,
      reply: KeyRevoked,
      handle: ({ caller, params, query }) => keys.revoke(caller, params.id, query.keep),
    }),
  ]
}

export function planRoutes(plan: Plan): AnyRoute[] {
  return [
    routeOf('Account')('GET', '/billing/subscription', {
      scope: 'account:read',
      sdk: 'billing.subscription',
      errors: { 404: ['not_found'] },
      summary: 'Get the subscription',
      description:
        'The limits of the account and its present usage. A call that would exceed a limit is rejected: 403, code plan_limit_reached. Not available to keys that are bound to one identity.',
      reply: Subscription,
      handle: ({ caller }) => plan.subscription(caller),
    }),
  ]
}
