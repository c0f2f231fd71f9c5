import { Deleted, Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import { NewSuppression, Suppression } from './model.ts'
import { recipientAddress } from './compose/recipients.ts'
import type { Suppressions } from './suppressions.ts'

export function suppressionRoutes(suppressions: Suppressions): AnyRoute[] {
  const route = routeOf('Suppressions')
  return [
    route('GET', '/suppressions', {
      scope: 'account:read',
      sdk: 'suppressions.list',
      errors: { 404: ['not_found'] },
      summary: 'List suppressions',
      description: 'Addresses to which this account cannot send, newest first.',
      query: Paging,
      reply: Page(Suppression),
      handle: ({ caller, query }) => suppressions.list(caller, query),
    }),
    route('POST', '/suppressions', {
      scope: 'account:write',
      sdk: 'suppressions.create',
      errors: { 403: ['plan_limit_reached'], 404: ['not_found'], 409: ['conflict'] },
      audit: 'suppression.created',
      summary: 'Suppress an address',
      body: NewSuppression,
      reply: Suppression,
      status: 201,
      example: { body: { email: 'ada@example.com', reason: 'asked for it' } },
      handle: ({ caller, body }) =>
        suppressions.create(caller, { email: recipientAddress(body.email, 'email').address, reason: body.reason ?? 'manual' }),
    }),
    route('DELETE', '/suppressions/:id', {
      scope: 'account:write',
      sdk: 'suppressions.delete',
      audit: 'suppression.deleted',
      summary: 'Lift a suppression',
      reply: Deleted,
      handle: ({ caller, params }) => suppressions.remove(caller, params.id),
    }),
  ]
}
