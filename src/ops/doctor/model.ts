import * as z from 'zod'
import type { Scope } from '../../core/scopes.ts'
import { Timestamp } from '../../core/shapes.ts'
import { eventType } from '../../events/model.ts'

export const Status = z.enum(['pass', 'warn', 'fail'])
export type Status = z.output<typeof Status>

/** The result of a check for one subject; a problem has a fix: a command, a setting or a DNS record to copy. */
export interface Line {
  name: string
  subject: string
  status: Status
  message: string
  fix: string | null
  /** The box whose machine it is about, where several use the database. */
  box?: string | undefined
}

const shape = {
  name: z.string().meta({ description: 'the check: config, disk, mx, … (docs/troubleshooting.md)' }),
  subject: z.string().meta({ description: 'the object checked: a path, a domain, an address' }),
  status: Status,
  message: z.string().meta({ description: 'the finding' }),
  fix: z.string().nullable().meta({ description: 'the remedy, verbatim: a command, a setting, a DNS record' }),
  box: z
    .string()
    .optional()
    .meta({ description: 'of several boxes on one database, the one whose machine was checked; absent for what all have' }),
}

export const DoctorLine = z
  .object({
    ...shape,
    since: Timestamp.meta({ description: 'time since which it has this status' }),
    checked_at: Timestamp,
  })
  .meta({ id: 'DoctorLine' })
export type DoctorLine = z.output<typeof DoctorLine>

export const DoctorReport = z
  .object({
    status: Status.meta({ description: 'the worst status of the lines' }),
    pass: z.int(),
    warn: z.int(),
    fail: z.int(),
    checked_at: Timestamp.nullable().meta({ description: 'time of the last check; null before the first' }),
    lines: z.array(DoctorLine),
  })
  .meta({ id: 'DoctorReport' })
export type DoctorReport = z.output<typeof DoctorReport>

/** A line whose status changed. */
export const DoctorChange = z
  .object({
    ...shape,
    before: Status.nullable().meta({ description: 'its status before; null for a new line' }),
    since: Timestamp,
  })
  .meta({ id: 'DoctorChange' })
export type DoctorChange = z.output<typeof DoctorChange>

const readers: Scope[] = ['account:read']

export const doctorChanged = eventType(
  'doctor.changed',
  readers,
  "The result of a check of the box changed. Only in the operator's account.",
  DoctorChange,
)

const weight: Record<Status, number> = { pass: 0, warn: 1, fail: 2 }

/** The worst of them; `pass` without any. */
function worst(statuses: readonly Status[]): Status {
  return statuses.reduce<Status>((one, other) => (weight[other] > weight[one] ? other : one), 'pass')
}

export function summary(lines: readonly Pick<Line, 'status'>[]): Pick<DoctorReport, 'status' | 'pass' | 'warn' | 'fail'> {
  const count = (status: Status): number => lines.filter((line) => line.status === status).length
  return { status: worst(lines.map(({ status }) => status)), pass: count('pass'), warn: count('warn'), fail: count('fail') }
}
