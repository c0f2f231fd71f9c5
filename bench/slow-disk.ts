import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('slow-disk.c', import.meta.url))

/** The environment of a process whose every fsync takes so many milliseconds longer. What it needs is compiled into the directory. */
export function slowDisk(directory: string, milliseconds: number): Record<string, string> {
  const shim = join(directory, 'slow-disk.so')
  execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', shim, source, '-ldl'])
  return { LD_PRELOAD: shim, SLOW_DISK_MICROSECONDS: String(milliseconds * 1000) }
}
