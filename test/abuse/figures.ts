import { readFileSync, readdirSync, writeFileSync } from 'node:fs'

/** What the kernel tells of a process's main thread, in milliseconds since its start. */
export interface ThreadTime {
  /** On a processor. */
  ran: number
  /** Ready to run, and waiting for a processor that others had. */
  waited: number
}

/** From `/proc/PID/schedstat` (Linux, Documentation/scheduler/sched-stats.rst). */
export function threadTime(pid: number): ThreadTime {
  const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ').map(Number)
  return { ran: ran / 1e6, waited: waited / 1e6 }
}

/** Forgets the most memory that a process has held. */
export function resetPeakMemory(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

/** The most memory that a process has held resident since that was forgotten, in bytes. */
export function peakMemory(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

/** Resident memory of all processes that a process started, in bytes. */
export function memoryOfChildren(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number))
      .reduce((sum, child) => sum + residentMemory(child) + memoryOfChildren(child), 0)
  } catch {
    // one that ended between the look at the list and the look at it
    return 0
  }
}

function residentMemory(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
}
