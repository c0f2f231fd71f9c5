import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

/** Above this load of the last minute others are at work and the figures say little. */
export const quiet = 1.5

/** Waits until the machine is quiet, at most so many minutes; answers the load it ended with. */
export async function waitForQuiet(minutes: number): Promise<number> {
  const end = performance.now() + minutes * 60_000
  while (loadavg()[0]! > quiet && performance.now() < end) await pause(5000)
  return loadavg()[0]!
}

/** What the figures were taken on, one fact a line. */
export function describeMachine(directory: string): string[] {
  const processors = cpus()
  return [
    `${processors.length} cores, ${processors[0]?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 1024 ** 3)} GB of memory`,
    `Linux ${release()}, ${fileSystemOf(directory)}, ${syncsPerSecond(directory)} fdatasync a second (4 KB each, one after the other)`,
    `Node ${process.version}`,
  ]
}

function fileSystemOf(directory: string): string {
  const [, line = ''] = execFileSync('df', ['--output=fstype,source', directory], { encoding: 'utf8' }).split('\n')
  return line.trim().split(/\s+/).join(' on ')
}

function syncsPerSecond(directory: string): number {
  const file = join(directory, `sync-probe-${process.pid}`)
  const handle = openSync(file, 'w')
  const page = Buffer.alloc(4096, 1)
  const began = performance.now()
  let count = 0
  for (; performance.now() - began < 500; count++) {
    writeSync(handle, page)
    fdatasyncSync(handle)
  }
  closeSync(handle)
  rmSync(file)
  return Math.round(count / ((performance.now() - began) / 1000))
}
