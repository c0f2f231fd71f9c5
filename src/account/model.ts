import * as z from 'zod'
import { planned } from '../core/planned.ts'
import type { Planned } from '../core/planned.ts'
import { scopes } from '../core/scopes.ts'
import { Id, Timestamp, TimestampInput } from '../core/shapes.ts'

const Scopes = z
  .array(z.enum(scopes, { error: `must be one of ${scopes.join(', ')}` }))
  .min(1)
  .transform((list) => [...new Set(list)])
  .meta({ override: { type: 'array', items: { type: 'string', enum: [...scopes] }, minItems: 1 } })

/** A key as lists show it: never the key itself. */
export const ApiKey = z
  .object({
    id: Id('key'),
    label: z.string(),
    scopes: z.array(z.enum(scopes)),
    key_prefix: z.string().meta({ description: 'the first characters, to tell keys apart' }),
    identity_id: Id('ident').nullable().meta({ description: 'the one identity the key is bound to' }),
    rate_limit: z.int().meta({ description: 'calls a minute; 0 is no limit' }),
    created_at: Timestamp,
    last_used_at: Timestamp.nullable(),
    expires_at: Timestamp.nullable(),
    revoked_at: Timestamp.nullable(),
  })
  .meta({ id: 'ApiKey' })
export type ApiKey = z.output<typeof ApiKey>

/** The one answer that shows the key. */
export const ApiKeyWithSecret = z
  .object({ ...ApiKey.shape, key: z.string().meta({ description: 'shown this once' }) })
  .meta({ id: 'ApiKeyWithSecret' })

export const NewApiKey = z
  .strictObject({
    label: z
      .string()
      .trim()
      .min(1)
      .max(128)
      .regex(/^\P{Cc}*$/u, { error: 'must be on one line' })
      .default('unnamed'),
    scopes: Scopes.optional().meta({ description: 'all of the caller’s own when left out' }),
    identity_id: Id('ident').optional(),
    rate_limit: z.int().min(0).max(1_000_000).optional(),
    expires_at: TimestampInput.optional(),
  })
  .meta({ id: 'NewApiKey' })
export type NewApiKey = z.output<typeof NewApiKey>

export const Rotation = z
  .strictObject({
    grace_seconds: z.int().min(0).max(604_800).default(0).meta({ description: 'how long the old key still works' }),
  })
  .meta({ id: 'Rotation' })

const number = z.int().min(0)

/** What one account may have and use, and does. */
export const Subscription = z
  .object({
    plan: z.literal('self_hosted'),
    status: z.literal('active'),
    limits: z.object(ofEach(number.nullable())).meta({ id: 'PlanLimits', description: 'null is no limit' }),
    usage: z.object(ofEach(number)).meta({ id: 'PlanUsage' }),
    current_period_start: Timestamp.meta({ description: 'the start of the month in UTC' }),
    current_period_end: Timestamp.meta({ description: 'when emails_sent and sms_sent begin again at 0' }),
  })
  .meta({ id: 'Subscription' })
export type Subscription = z.output<typeof Subscription>

function ofEach<Shape extends z.ZodType>(shape: Shape): Record<Planned, Shape> {
  return Object.fromEntries(planned.map((what) => [what, shape])) as Record<Planned, Shape>
}
