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
      summary: 'Create a webhook',
      description:
        'Every event it names is posted to the url, signed. The key must hold the scopes of those events; one bound to an identity makes ' +
        'webhooks for that identity only. It names its key in created_by; it ends when the key expires, or is revoked without keep. The secret ' +
        'is in this answer and never again.',
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
      summary: 'List webhooks',
      query: WebhookFilter,
      reply: Page(Webhook),
      handle: ({ caller, query }) => webhooks.list(caller, query),
    }),
    route('GET', '/webhooks/:id', {
      scope: 'account:read',
      summary: 'Get a webhook',
      reply: Webhook,
      handle: ({ caller, params }) => webhooks.get(caller, params.id),
    }),
    route('PATCH', '/webhooks/:id', {
      scope: 'account:write',
      summary: 'Change a webhook',
      description:
        'Needs the scopes of all that the webhook hears. Setting active switches on again what the box switched off. A key that expires changes ' +
        'only webhooks that end no later than it (else forbidden, code beyond_own); it may switch others off.',
      body: WebhookChange,
      reply: Webhook,
      example: { body: { events: ['*'], active: true } },
      handle: ({ caller, params, body }) => webhooks.update(caller, params.id, body),
    }),
    route('DELETE', '/webhooks/:id', {
      scope: 'account:write',
      summary: 'Delete a webhook',
      description: 'Once this is answered, nothing more is sent to it; an attempt under way is cut off.',
      reply: Deleted,
      handle: ({ caller, params }) => webhooks.remove(caller, params.id),
    }),
    route('GET', '/webhooks/:id/deliveries', {
      scope: 'account:read',
      summary: 'List deliveries of a webhook',
      description: 'Newest first, each with its attempts. Those that ended are kept for 30 days.',
      query: Paging,
      reply: Page(WebhookDelivery),
      handle: ({ caller, params, query }) => deliveries.list(caller, params.id, query),
    }),
    route('GET', '/webhooks/:id/deliveries/:delivery_id', {
      scope: 'account:read',
      summary: 'Get a delivery of a webhook',
      description: 'With what is posted, for callers who may read the event themselves.',
      reply: WebhookDeliveryWithRequest,
      handle: ({ caller, params }) => deliveries.get(caller, params.id, params.delivery_id),
    }),
    route('POST', '/webhooks/:id/deliveries/:delivery_id/redeliver', {
      scope: 'account:write',
      summary: 'Deliver an event once more',
      description: 'The same event with the same id, at once and from the beginning of the schedule.',
      reply: WebhookDelivery,
      handle: ({ caller, params }) => deliveries.redeliver(caller, params.id, params.delivery_id),
    }),
    route('POST', '/webhooks/:id/test', {
      scope: 'account:write',
      summary: 'Send a test event',
      description:
        'A webhook.test event for this webhook alone, whatever it asked for. The answer is the delivery; the list says how it went.',
      reply: WebhookDelivery,
      handle: ({ caller, params }) => deliveries.test(caller, params.id),
    }),
    route('POST', '/webhooks/:id/secret/rotate', {
      scope: 'account:write',
      receipt: ['secret'],
      summary: 'Give a webhook a new secret',
      description: 'For 24 hours deliveries are signed with the former one as well.',
      body: SecretRotation,
      reply: WebhookWithSecret,
      secret: true,
      handle: ({ caller, params, body }) => webhooks.rotate(caller, params.id, body.secret),
    }),
  ]
}
