import * as z from 'zod'
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

/** What a plan can limit: how many of each an account may have at once, or use in the current period. */
export const planned = [
  'identities',
  'domains',
  'webhooks',
  'api_keys',
  'phone_numbers',
  'cards',
  'totp_entries',
  'agents',
  'storage_bytes',
  'emails_sent',
  'sms_sent',
] as const
export type Planned = (typeof planned)[number]
