import { execFileSync } from 'node:child_process'
import { closeSync, ftruncateSync, openSync, statfsSync, writeSync } from 'node:fs'
import { onTestFinished } from 'vitest'
import { folder } from './folder.ts'
import { absent } from './peer.ts'

/** A new directory that is a disk of its own, of `size` MiB; undefined where none can be mounted (that takes root). */
export function smallDisk(size: number): string | undefined {
  const directory = folder()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}m`, 'tmpfs', directory], { stdio: 'pipe' })
  } catch {
    return absent('tmpfs', 'a small disk cannot be mounted (that takes root)')
  }
  onTestFinished(() => void execFileSync('umount', ['-l', directory]))
  return directory
}

/** Bytes that are free on the disk of a directory. */
export function freeOn(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

/** Writes a file that takes all the disk has, but for `left` bytes. */
export function fillDisk(file: string, left = 0): void {
  const handle = openSync(file, 'w')
  try {
    let size = 0
    for (let piece = new Uint8Array(1024 * 1024); piece.length >= 4096;) {
      try {
        size += writeSync(handle, piece)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        piece = piece.subarray(0, piece.length / 2)
      }
    }
    ftruncateSync(handle, size - left)
  } finally {
    closeSync(handle)
  }
}
