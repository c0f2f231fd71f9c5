import { statfs } from 'node:fs/promises'
import { day, hour } from '../../../core/clock.ts'
import { about, newCheck, type Check, quoted, reasonOf, spell } from '../check.ts'
import type { OuterContext } from '../context.ts'
import type { Line } from '../model.ts'
import { freeingSpace } from '../remedies.ts'
import { existingPart, formatBytes } from '../../../store/space.ts'

/** Checks the data disk: bytes, inodes, and when it will be full at the current rate. */
export function disk({ settings, testing, history, now }: OuterContext): Check {
  const { data_dir: directory, min_free: minimum } = settings
  const measure = testing?.measure ?? statfs
  return newCheck('disk', 'often', async () => {
    try {
      const seen = await measure(existingPart(directory))
      const free = seen.bsize * seen.bavail
      const past = (await history?.(free)) ?? []
      return [spaceLine(directory, free, minimum), ...inodes(directory, seen), ...trend(past, { free, minimum, now: now() })]
    } catch (error) {
      const line = about('disk', directory)
      return [line.fail(`The free space of the disk could not be read: ${reasonOf(error)}`, `Check it: df ${quoted(directory)}`)]
    }
  })
}

function spaceLine(directory: string, free: number, minimum: number): Line {
  const line = about('disk', directory)
  const much = `${formatBytes(free)} are free`
  const fix = freeingSpace(directory)
  if (free < minimum) {
    return line.fail(`${much}, less than min_free (${formatBytes(minimum)}): mail is deferred, and new data is rejected.`, fix)
  }
  if (minimum > 0 && free < 2 * minimum) return line.warn(`${much}; below ${formatBytes(minimum)} new data is rejected.`, fix)
  return line.pass(`${much}.`)
}

function inodes(directory: string, { files, ffree }: { files: number; ffree: number }): Line[] {
  // some file systems have unlimited inodes, and report none
  if (files === 0) return []
  const line = about('disk', 'inodes')
  const share = Math.floor((ffree / files) * 100)
  const fix = `Remove small files from the disk of ${directory}: find ${quoted(directory)} -xdev -type f | wc -l counts those of the box.`
  if (share < 1) return [line.fail('No more files can be created on the disk: it has no free inodes.', fix)]
  if (share < 5) return [line.warn(`Only ${share} % of the inodes of the disk are free.`, fix)]
  return [line.pass(`${share} % are free.`)]
}

function trend(
  past: { at: number; free: number }[],
  { free, minimum, now }: { free: number; minimum: number; now: number },
): Line[] {
  const [oldest] = past
  // less than half a day is no trend
  if (!oldest || now - oldest.at < 12 * hour) return []
  const line = about('disk', 'trend')
  const pace = (oldest.free - free) / (now - oldest.at)
  const left = pace > 0 ? Math.max(0, free - minimum) / pace : Infinity
  const lately = `${formatBytes(Math.round(Math.abs(pace) * day))} a day`
  if (left > 14 * day) return [line.pass(pace > 0 ? `It grows by ${lately}.` : 'It is not growing.')]
  const message = `It grows by ${lately}: at this rate new data is rejected in ${spell(left)}.`
  return [line.warn(message, 'Free space or enlarge the disk, or reduce the retention of mail.')]
}
