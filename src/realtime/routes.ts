import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Access } from './access.ts'
import { RealtimeToken, TokenInput } from './model.ts'

export function routes(access: Access): AnyRoute[] {
  return [
    routeOf('Realtime')('POST', '/realtime/token', {
      // additional events of a channel require their own scopes
      scope: ['messages:read', 'emails:read', 'sms:read'],
      summary: 'Get a token for a WebSocket',
      description:
        'It allows what the key may read, or less, and ends with the key. Expiry applies to connecting and subscribing; existing subscriptions continue.',
      body: TokenInput,
      reply: RealtimeToken,
      secret: true,
      example: { body: { channels: ['email_messages'], expires_in: 60 } },
      handle: ({ caller, body }) => access.token(caller, body),
    }),
  ]
}
