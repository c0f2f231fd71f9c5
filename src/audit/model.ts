import * as z from 'zod'
import { Id, Json, Paging, Timestamp, TimestampInput } from '../core/shapes.ts'

export const AuditRow = z
  .object({
    seq: z.int().meta({ description: 'its place in the log of the whole box' }),
    account_id: z.string(),
    at: Timestamp,
    actor: z.string().meta({
      description:
        'the id of a key or person; operator for commands on the machine of the box, anonymous for callers without a key',
    }),
    client: z.string().nullable().meta({
      description:
        'the id of the OAuth client, mcp for another client of /mcp, smtp for programs that submit mail, socket for commands; null for a plain call',
    }),
    address: z.string().nullable().meta({ description: 'the network address of the caller' }),
    action: z.string().meta({ example: 'key.created' }),
    target: z.string().nullable().meta({ description: 'the id of what it was done to' }),
    identity_id: z.string().nullable(),
    count: z.int().meta({ description: 'how many times, for reads and refusals that were repeated' }),
    detail: z.record(z.string(), Json),
    hash: z.string().meta({ description: 'SHA-256 of the row before and this one, in hex' }),
  })
  .meta({ id: 'AuditRow' })
export type AuditRow = z.output<typeof AuditRow>

export const AuditFilter = Paging.extend({
  actor: z.string().min(1).max(100).optional().meta({ description: 'the id of a key or person, operator or anonymous' }),
  action: z
    .string()
    .regex(/^[a-z_]{1,40}\.(?:[a-z_]{1,40}|\*)$/, { error: 'must be an action such as key.created, or key.* for all of keys' })
    .optional()
    .meta({ description: 'an action, or all of one subject: key.*' }),
  identity_id: Id('ident').optional(),
  after: TimestampInput.optional().meta({ description: 'from this time on' }),
  before: TimestampInput.optional().meta({ description: 'before this time' }),
})
export type AuditFilter = z.output<typeof AuditFilter>
