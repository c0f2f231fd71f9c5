import { Deleted, Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { WebhookDeliveries } from './deliveries.ts'
import {
  NewWebhook,
  SecretRotation,
  Webhook,
  WebhookChange,
  WebhookDelivery,
  WebhookDeliveryWithRequest,
  WebhookFilter,
  WebhookWithSecret,
} from './model.ts'
import type { Webhooks } from './webhooks.ts'

const route = routeOf('Webhooks')

export function routes(webhooks: Webhooks, deliveries: WebhookDeliveries): AnyRoute[] {
  return [
    route('POST', '/webhooks', {
      scope: 'account:write',
      sdk: 'webhooks.create',
      errors: { 403: ['plan_limit_reached', 'missing_scope'], 404: ['not_found'], 409: ['too_many_webhooks'] },
      audit: 'webhook.created',
      summary: 'Create a webhook',
      description:
        'Every event of the listed types is posted to the url, signed. The key must have the scopes of those events; one bound to an identity creates ' +
        'webhooks for that identity only. It names its key in created_by; it ends when the key expires, or is revoked without keep. The secret ' +
        'is returned only in this response.',
      body: NewWebhook,
      reply: WebhookWithSecret,
      status: 201,
      secret: true,
      location: (webhook) => `/v1/webhooks/${webhook.id}`,
      example: { body: { url: 'https://hooks.example.com/pillarbox', events: ['email.received', 'identity.created'] } },
      handle: ({ caller, body }) => webhooks.create(caller, body),
    }),
    route('GET', '/webhooks', {
      scope: 'account:read',
      sdk: 'webhooks.list',
      summary: 'List webhooks',
      query: WebhookFilter,
      reply: Page(Webhook),
      handle: ({ caller, query }) => webhooks.list(caller, query),
    }),
    route('GET', '/webhooks/:id', {
      scope: 'account:read',
      sdk: 'webhooks.get',
      summary: 'Get a webhook',
      reply: Webhook,
      handle: ({ caller, params }) => webhooks.get(caller, params.id),
    }),
    route('PATCH', '/webhooks/:id', {
      scope: 'account:write',
      sdk: 'webhooks.update',
      errors: { 403: ['missing_scope', 'beyond_own', 'plan_limit_reached'] },
      audit: 'webhook.changed',
      summary: 'Change a webhook',
      description:
        'Requires the scopes of all events of the webhook. Setting active enables a disabled webhook again. A key that expires can change ' +
        'only webhooks that end no later than itself (else forbidden, code beyond_own); it may disable others.',
      body: WebhookChange,
      reply: Webhook,
      example: { body: { events: ['*'], active: true } },
      handle: ({ caller, params, body }) => webhooks.update(caller, params.id, body),
    }),
    route('DELETE', '/webhooks/:id', {
      scope: 'account:write',
      sdk: 'webhooks.delete',
      audit: 'webhook.deleted',
      summary: 'Delete a webhook',
      description: 'After the response nothing more is sent to it; a running attempt is aborted.',
      reply: Deleted,
      handle: ({ caller, params }) => webhooks.remove(caller, params.id),
    }),
    route('GET', '/webhooks/:id/deliveries', {
      scope: 'account:read',
      sdk: 'webhooks.deliveries',
      summary: 'List deliveries of a webhook',
      description: 'Newest first, each with its attempts. Finished deliveries are kept for 30 days.',
      query: Paging,
      reply: Page(WebhookDelivery),
      handle: ({ caller, params, query }) => deliveries.list(caller, params.id, query),
    }),
    route('GET', '/webhooks/:id/deliveries/:delivery_id', {
      scope: 'account:read',
      sdk: 'webhooks.delivery',
      summary: 'Get a delivery of a webhook',
      description: 'With the request body, for callers who may read the event themselves.',
      reply: WebhookDeliveryWithRequest,
      handle: ({ caller, params }) => deliveries.get(caller, params.id, params.delivery_id),
    }),
    route('POST', '/webhooks/:id/deliveries/:delivery_id/redeliver', {
      scope: 'account:write',
      sdk: 'webhooks.redeliver',
      errors: { 403: ['missing_scope'], 409: ['webhook_inactive', 'event_gone', 'event_not_wanted', 'delivery_under_way'] },
      audit: 'webhook.redelivered',
      summary: 'Redeliver an event',
      description:
        'Sends the same event with the same id immediately, with a new retry schedule. The key must have the scope of the event, and the webhook ' +
        'must still receive it (else conflict, code event_not_wanted). An event that is no longer in the log is a conflict, code event_gone.',
      reply: WebhookDelivery,
      handle: ({ caller, params }) => deliveries.redeliver(caller, params.id, params.delivery_id),
    }),
    route('POST', '/webhooks/:id/test', {
      scope: 'account:write',
      sdk: 'webhooks.test',
      errors: { 409: ['webhook_inactive'] },
      audit: 'webhook.tested',
      summary: 'Send a test event',
      description:
        'Sends a webhook.test event only to this webhook, regardless of its event types. Returns the delivery; the list shows its result.',
      reply: WebhookDelivery,
      handle: ({ caller, params }) => deliveries.test(caller, params.id),
    }),
    route('POST', '/webhooks/:id/secret/rotate', {
      scope: 'account:write',
      receipt: ['secret'],
      sdk: 'webhooks.rotateSecret',
      errors: { 403: ['beyond_own', 'plan_limit_reached'], 409: ['conflict'] },
      audit: 'webhook_secret.rotated',
      summary: 'Rotate the secret of a webhook',
      description: 'For 24 hours deliveries are also signed with the former secret.',
      body: SecretRotation,
      reply: WebhookWithSecret,
      secret: true,
      handle: ({ caller, params, body }) => webhooks.rotate(caller, params.id, body.secret),
    }),
  ]
}
