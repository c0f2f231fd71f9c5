import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { Failure } from './failure.ts'

/**
 * Goes on as the user that a directory belongs to, when root asks: what root would make in a data directory, the box could not write
 * afterwards. There is no way back.
 */
export function actAsOwner(directory: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(directory)
  if (uid === 0) return
  process.setgroups!([gid])
  process.setgid!(gid)
  process.setuid!(uid)
}

/** Whether root would start a box that belongs to another user, who could not write afterwards what root makes; answers their id. */
export function foreignOwner(directory: string): number | undefined {
  if (process.getuid?.() !== 0) return undefined
  const owner = statSync(directory, { throwIfNoEntry: false })?.uid ?? 0
  return owner === 0 ? undefined : owner
}

/** Throws Failure when this user may not look into a directory: what is in it then seems not to be there. */
export function mustBeOpen(directory: string): void {
  if (!existsSync(directory)) return
  try {
    accessSync(directory, constants.R_OK | constants.X_OK)
  } catch (error) {
    const message = `${directory} may not be read by this user: ask as root, or as the user the box runs as.`
    throw Object.assign(new Failure(message, 'not_allowed'), { cause: error })
  }
}
