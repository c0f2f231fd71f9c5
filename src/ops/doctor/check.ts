import { day, hour, minute } from '../../core/clock.ts'
import type { Line, Status } from './model.ts'

/** How often a check is run by itself: what costs nothing often, what asks others seldom. */
export type Pace = 'often' | 'usual' | 'seldom'

/** One thing that the doctor looks at. */
export interface Check {
  /** Usually the name of its lines. */
  name: string
  pace: Pace
  /** Says what is; throws only what is a bug. `asked` when somebody waits for it: what was looked up before is looked up anew. */
  run(asked: boolean): Promise<Line[]>
}

/** What the line of one check and subject can say. */
export interface Say {
  pass(message: string): Line
  /** Whatever is not well says what mends it. */
  warn(message: string, fix: string): Line
  fail(message: string, fix: string): Line
  of(status: Exclude<Status, 'pass'>, message: string, fix: string): Line
}

/** Begins a line. */
export function about(name: string, subject: string): Say {
  const of = (status: Exclude<Status, 'pass'>, message: string, fix: string): Line => ({ name, subject, status, message, fix })
  return {
    pass: (message) => ({ name, subject, status: 'pass', message, fix: null }),
    warn: (message, fix) => of('warn', message, fix),
    fail: (message, fix) => of('fail', message, fix),
    of,
  }
}

/** A word as a shell takes it. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Milliseconds in words: `3 days`, `5 hours`, `20 minutes`. */
export function spell(milliseconds: number): string {
  const units: [number, string][] = [
    [day, 'day'],
    [hour, 'hour'],
    [minute, 'minute'],
    [1000, 'second'],
  ]
  const [size, unit] = units.find(([least]) => milliseconds >= least) ?? [1000, 'second']
  const count = Math.floor(milliseconds / size)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** Why something failed, on one line. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : 'it failed'
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, 300)
}

/** What came of running a check. */
export interface Finding {
  check: Check
  lines: Line[]
  /** Why it could not be made: it then says nothing of its subjects. */
  error?: unknown
}

/** Longest time for one check, in milliseconds. */
const timeout = 25_000

/** Runs a check to its end, but no longer than 25 s. One that fails says so itself. */
export async function examine(check: Check, asked: boolean): Promise<Finding> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`it did not end within ${timeout / 1000} s`)), timeout)
  try {
    return { check, lines: await Promise.race([check.run(asked), late.promise]) }
  } catch (error) {
    const line = about(check.name, 'the check itself').warn(
      `It could not be made: ${reasonOf(error)}.`,
      'Look into the log of the box for "a check of the doctor failed".',
    )
    return { check, lines: [line], error }
  } finally {
    clearTimeout(timer)
  }
}
