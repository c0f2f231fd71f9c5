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
      summary: 'Get how the box is',
      description: 'What runs, what waits, what came and went in a day, and the disk.',
      reply: Status,
      handle: () => state.status(),
    }),
    route('POST', '/reload', {
      scope: 'account:write',
      operator: true,
      receipt: 'all',
      summary: 'Read the settings again',
      description:
        'As `systemctl reload pillarbox` does. Settings that are refused change nothing: the answer is `invalid_request` with the code ' +
        '`settings_refused`, and names file, line and column.',
      reply: Reloaded,
      handle: () => reread(),
    }),
    route('GET', '/queue', {
      scope: 'account:read',
      operator: true,
      summary: 'List the queue',
      description: 'Everything that leaves the box, of all accounts, newest first: mail, text messages, webhooks.',
      query: QueueFilter,
      reply: Page(QueueEntry),
      example: { query: { state: 'waiting', kind: 'email' } },
      handle: ({ query }) => backlog.list(query),
    }),
    route('GET', '/queue/summary', {
      scope: 'account:read',
      operator: true,
      summary: 'Summarize the queue',
      description: 'How much waits, and for how long, by kind and by destination.',
      reply: QueueSummary,
      handle: () => backlog.summary(),
    }),
    route('GET', '/queue/:id', {
      scope: 'account:read',
      operator: true,
      summary: 'Get a delivery of the queue',
      description: 'With every attempt, and what was heard of it.',
      reply: QueueEntryWithHistory,
      handle: ({ params }) => backlog.get(params.id),
    }),
    route('POST', '/queue/:id/retry', {
      scope: 'account:write',
      operator: true,
      summary: 'Try a delivery of the queue now',
      description:
        'One that waits is tried now, at its place in the schedule; mail and webhook deliveries that failed once more from its beginning. ' +
        'What is done, under way, bounced or taken back is a conflict.',
      reply: QueueEntryWithHistory,
      handle: ({ params }) => backlog.retry(params.id),
    }),
    route('DELETE', '/queue/:id', {
      scope: 'account:write',
      operator: true,
      summary: 'Drop a delivery of the queue',
      description:
        'It is not tried any more. The copy of a message has failed, with “cancelled by the operator” for an answer and its event; a webhook is ' +
        'not told, which does not count as its failure. What is under way is a conflict.',
      reply: Deleted,
      handle: ({ params }) => backlog.drop(params.id),
    }),
  ]
}
