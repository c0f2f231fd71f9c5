import { Deleted, Page } from '../../core/shapes.ts'
import { type AnyRoute, routeOf } from '../../http/route.ts'
import type { Backlog } from './backlog.ts'
import { QueueEntry, QueueEntryWithHistory, QueueFilter, QueueSummary, Reloaded, Status } from './model.ts'
import type { BoxState } from './state.ts'

const route = routeOf('Operation')

interface Operated {
  backlog: Backlog
  state: BoxState
  reread: () => Promise<Reloaded>
}

export function routes({ backlog, state, reread }: Operated): AnyRoute[] {
  return [
    route('GET', '/status', {
      scope: 'account:read',
      operator: true,
      sdk: 'box.status',
      summary: 'Get the status of the box',
      description: 'Its modules, what it can send, its queue, traffic of the last day, and disk.',
      reply: Status,
      handle: () => state.status(),
    }),
    route('POST', '/reload', {
      scope: 'account:write',
      operator: true,
      receipt: 'all',
      sdk: 'box.reload',
      errors: { 400: ['settings_refused'], 409: ['conflict'] },
      audit: 'settings.reloaded',
      summary: 'Reload the settings',
      description:
        'Like `systemctl reload pillarbox`. Invalid settings change nothing: the response is `invalid_request` with the code ' +
        '`settings_refused`, naming file, line and column.',
      reply: Reloaded,
      handle: () => reread(),
    }),
    route('GET', '/queue', {
      scope: 'account:read',
      operator: true,
      sdk: 'queue.list',
      summary: 'List the queue',
      description: 'Deliveries of all accounts, newest first: mail, text messages, webhooks.',
      query: QueueFilter,
      reply: Page(QueueEntry),
      example: { query: { state: 'waiting', kind: 'email' } },
      handle: ({ query }) => backlog.list(query),
    }),
    route('GET', '/queue/summary', {
      scope: 'account:read',
      operator: true,
      sdk: 'queue.summary',
      summary: 'Summarize the queue',
      description: 'Length and age of the queue, by kind and by destination.',
      reply: QueueSummary,
      handle: () => backlog.summary(),
    }),
    route('GET', '/queue/:id', {
      scope: 'account:read',
      operator: true,
      sdk: 'queue.get',
      summary: 'Get a delivery of the queue',
      description: 'With every attempt and its response.',
      reply: QueueEntryWithHistory,
      handle: ({ params }) => backlog.get(params.id),
    }),
    route('POST', '/queue/:id/retry', {
      scope: 'account:write',
      operator: true,
      sdk: 'queue.retry',
      errors: { 409: ['delivery_done', 'delivery_under_way', 'not_repeatable'] },
      audit: 'delivery.retried',
      summary: 'Retry a delivery of the queue now',
      description:
        'A waiting delivery is tried now and keeps its place in the retry schedule; a failed mail or webhook delivery starts the schedule again. ' +
        'A delivery that is done, running, bounced or cancelled is a conflict.',
      reply: QueueEntryWithHistory,
      handle: ({ params }) => backlog.retry(params.id),
    }),
    route('DELETE', '/queue/:id', {
      scope: 'account:write',
      operator: true,
      sdk: 'queue.delete',
      errors: { 409: ['delivery_under_way', 'not_droppable'] },
      audit: 'delivery.dropped',
      summary: 'Drop a delivery of the queue',
      description:
        'Cancels the delivery. The copy of a message fails with the response “cancelled by the operator” and its event; a webhook is ' +
        'not called, which does not count as its failure. A running delivery is a conflict.',
      reply: Deleted,
      handle: ({ params }) => backlog.drop(params.id),
    }),
  ]
}
