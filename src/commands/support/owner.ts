import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { serviceUnit } from '../../core/service-unit.ts'
import { findUser, type Owner } from '../../install/service-user.ts'
import { Failure } from './refuse.ts'

/**
 * Goes on as the user that a directory belongs to, when root asks: what root would make in a data directory, the box could not write
 * afterwards. There is no way back.
 */
export function actAsOwner(directory: string): void {
  if (process.getuid?.() !== 0) return
  become(statSync(directory))
}

/**
 * Goes on as the user that the box of a data directory runs as, when root asks: the user of its systemd unit, else the owner of the
 * directory. There is no way back. Answers that user; undefined for another caller, and where the box is root's or is not there yet.
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
