import { closeSync, fsyncSync, openSync } from 'node:fs'

/** Forces a file, or the names in a directory, to disk. Not for a file that SQLite has open: closing the handle drops its locks. */
export function syncPath(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
