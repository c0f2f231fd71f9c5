import { about, reasonOf } from './check.ts'
import type { Check } from './check.ts'
import type { Line } from './model.ts'

/** What came of running a check. */
export interface Finding {
  check: Check
  lines: Line[]
  /** Why it could not be made: it then says nothing of its subjects. */
  error?: unknown
}

/** Longest time for one check, in milliseconds. */
const patience = 25_000

/** Runs a check to its end, but no longer than 25 s. One that fails says so itself. */
export async function examine(check: Check, asked: boolean): Promise<Finding> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`it did not end within ${patience / 1000} s`)), patience)
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
