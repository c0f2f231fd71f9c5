import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** What lies where a directory is being restored, and tells it from anything else. */
export const mark = 'unfinished'

/** Where a directory is built before it is adopted: inside it, where there is one, or beside its name. */
export function draftsOf(directory: string): [inside: string, beside: string] {
  return [join(directory, '.restoring'), `${resolve(directory)}.part`]
}

/**
 * Throws a sentence where a restore is under way or was cut short: whoever waits for a box must not find an empty one in its place, which
 * refuses its mail.
 */
export function mustBeNoRestore(directory: string): void {
  if (existsSync(join(directory, 'state.json'))) return
  const draft = draftsOf(directory).find((one) => existsSync(join(one, mark)))
  if (draft === undefined) return
  throw new Error(
    `${draft} is of a restore that is under way or was cut short: wait for its end, or run it again. To begin an empty box, remove it.`,
  )
}
