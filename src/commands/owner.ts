import { statSync } from 'node:fs'

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
