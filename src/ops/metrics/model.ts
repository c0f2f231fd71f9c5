import * as z from 'zod'
import { Timestamp, TimestampInput } from '../../core/shapes.ts'

const Count = (description: string) => z.int().nullable().meta({ description })

export const StatsValues = z.object({
  mail_in: Count('messages accepted by SMTP'),
  mail_refused: Count('messages and recipients rejected by SMTP'),
  mail_delivered: Count('copies of messages accepted by a server, a relay or this box'),
  mail_failed: Count('copies of messages that failed permanently'),
  events: Count('events in the log'),
  webhooks_done: Count('successful webhook deliveries'),
  webhooks_failed: Count('webhook deliveries that failed permanently'),
  api_calls: Count('answered API calls, with any status'),
  queue_depth: Count('waiting and running deliveries of all kinds; the maximum of an hour'),
  oldest_due: Count('delay of the oldest due delivery in seconds; the maximum of an hour'),
  disk_free: Count('free bytes on the disk; the minimum of an hour'),
  database: Count('bytes of the database and its log; the maximum of an hour'),
})
export type StatsValues = z.output<typeof StatsValues>

export const StatsFilter = z.strictObject({
  from: TimestampInput.optional().meta({ description: 'default: an hour before `to`, or a day if the step is an hour' }),
  to: TimestampInput.optional().meta({ description: 'exclusive; default: now' }),
  step: z.enum(['minute', 'hour'], { error: 'must be minute or hour' }).default('minute'),
})
export type StatsFilter = z.output<typeof StatsFilter>

export const Stats = z
  .object({
    from: Timestamp.meta({ description: 'start of the first step' }),
    to: Timestamp.meta({ description: 'end of the last step' }),
    step: z.enum(['minute', 'hour']),
    series: z
      .array(z.object({ at: Timestamp.meta({ description: 'start of the step' }), ...StatsValues.shape }))
      .meta({ description: 'every step, oldest first; null if the box was not running, or the step has not ended' }),
  })
  .meta({ id: 'Stats' })
export type Stats = z.output<typeof Stats>
