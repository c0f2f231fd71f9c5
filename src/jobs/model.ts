import * as z from 'zod'
import { Maker } from '../accounts/model.ts'
import { Id, Json, Paging, Timestamp } from '../core/shapes.ts'

export const Progress = z.object({
  done: z.int(),
  total: z.int().nullable().meta({ description: 'null while unknown' }),
  unit: z.string().meta({ description: 'the unit: messages, octets, …' }),
})
export type Progress = z.output<typeof Progress>

/** Long-running work that continues after the call that started it. */
export const Job = z
  .object({
    id: Id('job'),
    kind: z.string().meta({ description: 'export, import, …' }),
    identity_id: Id('ident').nullable(),
    status: z.enum(['running', 'done', 'failed', 'cancelled']),
    progress: Progress,
    result: z.record(z.string(), Json).nullable().meta({
      description: 'the result, once it is done',
    }),
    error: z
      .object({
        message: z.string(),
        code: z.string().nullable().meta({ description: 'a stable machine-readable code, such as import_too_large' }),
      })
      .nullable(),
    created_at: Timestamp,
    created_by: Maker,
    finished_at: Timestamp.nullable(),
  })
  .meta({ id: 'Job' })
export type Job = z.output<typeof Job>
export type Result = NonNullable<Job['result']>

export const JobFilter = z.strictObject({
  ...Paging.shape,
  kind: z
    .string()
    .regex(/^[a-z][a-z-]{0,39}$/, { error: 'must be a kind of job, such as export' })
    .optional(),
})
export type JobFilter = z.output<typeof JobFilter>
