import { day, hour, minute } from '../../core/clock.ts'
import type { Line, Status } from './model.ts'

/** How often a check runs automatically: cheap checks often, external lookups seldom. */
export type Pace = 'often' | 'usual' | 'seldom'

export interface Check {
  /** Usually the name of its lines. */
  name: string
  pace: Pace
  /** True if it is about what all boxes on one database have: one of them runs it by itself. Others are about a machine, and are run by each. */
  shared: boolean
  /** Runs the check; throws only for bugs. `asked` when requested by a caller: caches are bypassed. */
  run(asked: boolean): Promise<Line[]>
}

/** A check of the machine of the box: its files, settings and listeners, and what it can reach. */
export function newCheck(name: string, pace: Pace, run: Check['run']): Check {
  return { name, pace, shared: false, run }
}

/** A check of what all boxes on one database have. */
export function sharedCheck(name: string, pace: Pace, run: Check['run']): Check {
  return { name, pace, shared: true, run }
}

interface Say {
  pass(message: string): Line
  /** A line that is not well contains a fix. */
  warn(message: string, fix: string): Line
  fail(message: string, fix: string): Line
  of(status: Exclude<Status, 'pass'>, message: string, fix: string): Line
}

export function about(name: string, subject: string): Say {
  const of = (status: Exclude<Status, 'pass'>, message: string, fix: string): Line => ({ name, subject, status, message, fix })
  return {
    pass: (message) => ({ name, subject, status: 'pass', message, fix: null }),
    warn: (message, fix) => of('warn', message, fix),
    fail: (message, fix) => of('fail', message, fix),
    of,
  }
}

/** Quotes a word for a shell. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** A duration in words: `3 days`, `5 hours`, `20 minutes`. */
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

/** The message of an error, on one line. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : 'it failed'
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, 300)
}

export interface Finding {
  check: Check
  lines: Line[]
  /** Why it failed to run: its subjects keep their earlier status. */
  error?: unknown
}

const timeout = 25_000

/** Runs a check for at most 25 s. A failure becomes a line of its own. */
export async function examine(check: Check, asked: boolean): Promise<Finding> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`it did not finish within ${timeout / 1000} s`)), timeout)
  try {
    return { check, lines: await Promise.race([check.run(asked), late.promise]) }
  } catch (error) {
    const line = about(check.name, 'the check itself').warn(
      `The check failed: ${reasonOf(error)}.`,
      'Search the log of the box for "a check of the doctor failed".',
    )
    return { check, lines: [line], error }
  } finally {
    clearTimeout(timer)
  }
}
