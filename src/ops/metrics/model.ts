import * as z from 'zod'
import { Timestamp, TimestampInput } from '../../core/shapes.ts'

const Count = (description: string) => z.int().nullable().meta({ description })

/** The values of each minute. */
export const StatsValues = z.object({
  mail_in: Count('messages that were taken by SMTP'),
  mail_refused: Count('messages and recipients that were refused by SMTP'),
  mail_delivered: Count('copies of messages that a server, a relay or this box took'),
  mail_failed: Count('copies of messages that failed for good'),
  events: Count('events in the log'),
  webhooks_done: Count('webhook deliveries that were taken'),
  webhooks_failed: Count('webhook deliveries that failed for good'),
  api_calls: Count('calls of the API that were answered, whatever the answer'),
  queue_depth: Count('deliveries of all kinds that waited or were under way; of an hour the most'),
  oldest_due: Count('seconds by which the delivery that was longest due was late; of an hour the most'),
  disk_free: Count('octets that were free on the disk; of an hour the least'),
  database: Count('octets of the database and its log; of an hour the most'),
})
export type StatsValues = z.output<typeof StatsValues>

export const StatsFilter = z.strictObject({
  from: TimestampInput.optional().meta({ description: 'an hour before `to` unless said; a day when the step is an hour' }),
  to: TimestampInput.optional().meta({ description: 'not included; now unless said' }),
  step: z.enum(['minute', 'hour'], { error: 'must be minute or hour' }).default('minute'),
})
export type StatsFilter = z.output<typeof StatsFilter>

/** Metrics by step. */
export const Stats = z
  .object({
    from: Timestamp.meta({ description: 'when the first step began' }),
    to: Timestamp.meta({ description: 'when the last step ends' }),
    step: z.enum(['minute', 'hour']),
    series: z
      .array(z.object({ at: Timestamp.meta({ description: 'when the step began' }), ...StatsValues.shape }))
      .meta({ description: 'every step, the oldest first; null where the box did not run, or the step is not over yet' }),
  })
  .meta({ id: 'Stats' })
export type Stats = z.output<typeof Stats>
