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
      summary: 'Create an API key',
      description:
        'The key is in this answer and never again. A key gives only scopes it holds, no more calls and no longer life than its own, and a bound ' +
        'key only keys bound alike. Calls of keys that a key with a rate_limit of its own made count against that limit too.',
      body: NewApiKey,
      reply: ApiKeyWithSecret,
      status: 201,
      secret: true,
      example: { body: { label: 'mail reader', scopes: ['emails:read'] } },
      handle: ({ caller, body }) => keys.create(caller, body),
    }),
    route('GET', '/api-keys', {
      scope: 'account:read',
      summary: 'List API keys',
      description: 'Keys are masked: only key_prefix is shown.',
      query: ApiKeyFilter,
      reply: Page(ApiKey),
      handle: ({ caller, query }) => keys.list(caller, query),
    }),
    route('POST', '/api-keys/:id/rotate', {
      scope: 'account:write',
      receipt: ['key', 'key_prefix', 'expires_at'],
      summary: 'Give a key a new secret',
      description:
        'The former one works for grace_seconds more: until then, as a key that expires then, so that nothing made with it lasts longer; it rotates and revokes no key ' +
        '(forbidden, code former_secret). What was made with the key before stays. The key ends with the key that did this, and with what that one comes from, until a key that comes ' +
        'from neither does it again. At most 16 may do it that come from one another (forbidden, code too_many_rotators).',
      body: Rotation,
      reply: ApiKeyWithSecret,
      secret: true,
      handle: ({ caller, params, body }) => keys.rotate(caller, params.id, body.grace_seconds),
    }),
    route('DELETE', '/api-keys/:id', {
      scope: 'account:write',
      summary: 'Revoke an API key',
      description:
        'The next call with it is 401. What was made with it ends too: keys, also those it gave a new secret, webhooks, also those it ' +
        'ever turned elsewhere, jobs that run, files of exports and scheduled e-mails; and what those keys made. A key that a key from elsewhere gave another secret since is let go, once the secret ' +
        'before it works no more. The key that asks stays. With keep=true all of it stays, and ' +
        'names the key in created_by. A last lasting key with account:write stays: a conflict, code last_key.',
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
      summary: 'Get the subscription',
      description:
        'The limits of the account, and what it uses of them now. What would pass a limit is refused: 403, code plan_limit_reached. Not for keys that are bound to one identity.',
      reply: Subscription,
      handle: ({ caller }) => plan.subscription(caller),
    }),
  ]
}
