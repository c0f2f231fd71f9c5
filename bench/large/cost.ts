import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Box, startBox } from '../box.ts'
import { type Finding, finding } from '../finding.ts'
import { figure } from '../measure.ts'
import { usageOf } from '../process-tree.ts'
import { openStore } from '../seed.ts'

/** What some work took of a box. */
export interface Cost {
  /** Milliseconds until it was done, and of processor time, which include what trails behind for half a second. */
  time: number
  cpu: number
}

export async function costOf({ pid }: Pick<Box, 'pid'>, work: () => Promise<unknown>): Promise<Cost> {
  const before = usageOf(pid)
  const began = performance.now()
  await work()
  const time = performance.now() - began
  await pause(500)
  return { time, cpu: (usageOf(pid).cpu - before.cpu) / 1000 }
}

/** `12.0 ms, 15.0 ms CPU` for each of so many. */
export function each({ time, cpu }: Cost, count: number): string {
  return `${figure(time / count)} ms, ${figure(cpu / count)} ms CPU`
}

/** A row of a bench without a goal. */
export function told(goal: string, what: string, value: number, unit: string, figures: string[]): Finding {
  return finding({ goal, what, against: '–', value, unit, figures })
}

/** The peak of the memory of a box, as a figure. */
export function peakOf({ pid }: Pick<Box, 'pid'>): string {
  return `peak memory of the process ${usageOf(pid).peak.toFixed(0)} MB`
}

/** The start of a box that has much of something, by the goal of any start; beside it that of one that has nothing, in this directory. */
export async function startOf({ started_in }: Pick<Box, 'started_in'>, what: string, directory: string): Promise<Finding> {
  const data = join(directory, 'empty')
  await (await openStore(data)).close()
  const empty = await startBox({ directory: data, dns: '127.0.0.1:9' })
  await empty.stop()
  return finding({
    goal: 'P22',
    what: `Start with ${what}, to the first answer (files in the page cache)`,
    against: '–',
    value: started_in / 1000,
    most: 1,
    unit: 's',
    figures: [`${figure(started_in / 1000)} s, with none ${figure(empty.started_in / 1000)} s, once each`],
  })
}
