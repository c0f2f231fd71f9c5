import type { Scope } from '../core/scopes.ts'
import { Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { EventFeed } from './feed.ts'
import { EventEnvelope, EventFilter, FeedFilter, FeedPage, Message, WaitAnswer, WaitFilter } from './model.ts'
import type { Timeline } from './timeline.ts'
import type { Waiting } from './wait.ts'

const route = routeOf('Timeline')

const readers: Scope[] = ['identities:read', 'messages:read', 'emails:read', 'sms:read', 'cards:read']

export function routes(timeline: Timeline, waiting: Waiting, feed: EventFeed): AnyRoute[] {
  return [
    route('GET', '/events', {
      scope: readers,
      sdk: 'account.events',
      errors: { 400: ['since_expired'], 404: ['not_found'], 429: ['too_many_waits'] },
      audit: 'event.listed',
      summary: 'List events of the account',
      description:
        'Of all its identities, and of its domains, certificates and doctor: what a WebSocket sends on agent_events. Newest first; with since, oldest first from there. ' +
        'With wait it answers as soon as there is an event. A page may have few events or none while has_more is true: continue with next_cursor. ' +
        'At most 500 calls of a key and 1,000 of an account can wait at the same time (rate_limited, code too_many_waits).',
      query: FeedFilter,
      reply: FeedPage,
      timeout: 130_000,
      example: { query: { types: 'email.received,sms.received', wait: '0' } },
      handle: ({ caller, query, signal, turn }) => feed.read(caller, query, { signal, turn }),
    }),
    route('GET', '/identities/:id/events', {
      scope: readers,
      sdk: 'identities.events',
      errors: { 400: ['since_expired'] },
      audit: 'event.listed',
      summary: 'List events',
      description: 'Newest first; with since, oldest first from there. Only types covered by the scopes of the key.',
      query: EventFilter,
      reply: Page(EventEnvelope),
      example: { query: { type: 'email.received' } },
      handle: ({ caller, params, query }) => timeline.events(caller, params.id, query),
    }),
    route('GET', '/identities/:id/messages', {
      scope: 'messages:read',
      sdk: 'identities.messages',
      audit: 'message.listed',
      summary: 'List all messages',
      description: 'E-mail and SMS together, oldest first, each with its type.',
      query: Paging,
      reply: Page(Message),
      handle: ({ caller, params, query }) => timeline.messages(caller, params.id, query),
    }),
    route('GET', '/identities/:id/wait', {
      scope: ['messages:read', 'emails:read', 'sms:read'],
      sdk: 'identities.wait',
      errors: { 400: ['since_expired'], 403: ['missing_scope'], 429: ['too_many_waits'] },
      audit: { action: 'message.awaited', target: ({ item }: WaitAnswer) => item?.id },
      summary: 'Wait for a message',
      description:
        'Returns a message received after since, or waits for one. Without since it starts two minutes ago, skipping messages that a wait of this key has already returned. At most 500 calls of a key and 1,000 of an account can wait at the same time (rate_limited, code too_many_waits).',
      query: WaitFilter,
      reply: WaitAnswer,
      effect: true,
      shared: true,
      timeout: 130_000,
      example: { query: { channel: 'email', timeout: '0' } },
      handle: ({ caller, params, query, signal, turn }) => waiting.wait(caller, params.id, query, { signal, turn }),
    }),
  ]
}
