import type { Metrics } from '../../core/metrics.ts'
import type { StatsValues } from './model.ts'

/** The counters; all other values are gauges. */
export const counted = [
  'mail_in',
  'mail_refused',
  'mail_delivered',
  'mail_failed',
  'events',
  'webhooks_done',
  'webhooks_failed',
  'api_calls',
] as const satisfies readonly (keyof StatsValues)[]

export type Counts = Record<(typeof counted)[number], number>

/** The counters of the SMTP receiver since the start. */
export type Received = Record<'messages' | 'refused_messages' | 'refused_recipients', number>

/** The counters of the box since its start, with the given `events`. */
export async function countsOf(metrics: Metrics, received: Received | undefined, events: number): Promise<Counts> {
  const ended = (kind: string, outcome: string): Promise<number> =>
    metrics.total('pillarbox_delivery_attempts_total', (labels) => labels['kind'] === kind && labels['outcome'] === outcome)
  return {
    mail_in: received?.messages ?? 0,
    mail_refused: received ? received.refused_messages + received.refused_recipients : 0,
    mail_delivered: await ended('email', 'done'),
    mail_failed: await ended('email', 'failed'),
    events,
    webhooks_done: await ended('webhook', 'done'),
    webhooks_failed: await ended('webhook', 'failed'),
    api_calls: await metrics.total('http_requests_total', ({ route }) => String(route).startsWith('/v1/')),
  }
}

export function difference(now: Counts, before: Counts): Counts {
  return Object.fromEntries(counted.map((name) => [name, now[name] - before[name]])) as Counts
}

export const nothing = Object.fromEntries(counted.map((name) => [name, 0])) as Counts
