import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { serviceUnit } from '../../core/service-unit.ts'
import { findUser, type Owner } from '../../install/service-user.ts'
import { Failure } from './refuse.ts'

/** Switches from root to the owner of a directory, as the box could not write files of root. Cannot be undone. */
export function actAsOwner(directory: string): void {
  if (process.getuid?.() !== 0) return
  become(statSync(directory))
}

/**
 * Switches from root to the user of a box: the user of its systemd unit, else the owner of the data directory. Cannot be undone. Returns
 * that user; undefined for a caller that is not root, and where the box belongs to root or does not exist.
 */
export function actAsBoxUser(directory: string): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined
  const named = serviceUnit(directory)?.user
  const user = (named === undefined ? undefined : findUser(named)) ?? statSync(directory, { throwIfNoEntry: false })
  if (user === undefined || user.uid === 0) return undefined
  become(user)
  return { uid: user.uid, gid: user.gid }
}

function become({ uid, gid }: Owner): void {
  if (uid === 0) return
  process.setgroups!([gid])
  process.setgid!(gid)
  process.setuid!(uid)
}

/** The owner's id when root would start a box of another user, who could not write root's files afterwards. */
export function foreignOwner(directory: string): number | undefined {
  if (process.getuid?.() !== 0) return undefined
  const owner = statSync(directory, { throwIfNoEntry: false })?.uid ?? 0
  return owner === 0 ? undefined : owner
}

/** Throws Failure when this user may not read a directory, whose files would then seem missing. */
export function mustBeOpen(directory: string): void {
  if (!existsSync(directory)) return
  try {
    accessSync(directory, constants.R_OK | constants.X_OK)
  } catch (error) {
    const message = `${directory} may not be read by this user: run the command as root, or as the user that runs the box.`
    throw Object.assign(new Failure(message, 'not_allowed'), { cause: error })
  }
}
