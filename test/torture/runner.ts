import { mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkout, makeBuild } from './builds.ts'
import type { Trial } from './trial.ts'

export interface Bounds {
  seed: number
  /** The number of the first case. */
  from?: number
  /** Tries after which no further case begins. */
  tries?: number
  /** Milliseconds after which no further case begins. */
  time?: number
  /** The name of the broken build that is tried; the first fault ends it. */
  broken?: string
  /** Runs the short form, for the tests. */
  short?: boolean
  /** Ends at the first case with a fault. */
  first?: boolean
  /** Told of each case. */
  progress?: (line: string) => void
}

export interface Finding {
  case: number
  fault: string
}

export interface TrialResult {
  trial: string
  seed: number
  from: number
  cases: number
  tries: number
  seconds: number
  broken: string | null
  findings: Finding[]
  /** What the trial counted besides the faults. */
  notes?: string[]
}

/** Runs the cases of a trial one after the other, as long as its bounds allow. */
export async function runTrial(trial: Trial, bounds: Bounds): Promise<TrialResult> {
  const directory = mkdtempSync(join(fastDirectory(), 'pillarbox-torture-'))
  const remove = (): void => rmSync(directory, { recursive: true, force: true })
  process.once('exit', remove)
  const began = performance.now()
  const from = bounds.from ?? 0
  const result: TrialResult = {
    trial: trial.name,
    seed: bounds.seed,
    from,
    cases: 0,
    tries: 0,
    seconds: 0,
    broken: bounds.broken ?? null,
    findings: [],
  }
  try {
    const program =
      bounds.broken === undefined ? checkout : makeBuild(brokenBuildOf(trial, bounds.broken), join(directory, 'program'))
    const work = join(directory, 'work')
    mkdirSync(work)
    const cases = await trial.open({ directory: work, program, seed: bounds.seed, short: bounds.short ?? false })
    try {
      const mayGoOn = (): boolean =>
        result.tries < (bounds.tries ?? Infinity) &&
        performance.now() - began < (bounds.time ?? Infinity) &&
        !((bounds.first || bounds.broken !== undefined) && result.findings.length > 0)
      for (let number = from; mayGoOn(); number++) {
        const { tries, faults } = await cases.run(number)
        result.cases += 1
        result.tries += tries
        for (const fault of faults) result.findings.push({ case: number, fault })
        bounds.progress?.(`${trial.name} case ${number}: ${result.tries} ${trial.goal.unit}, ${faults.length} faults`)
        for (const fault of faults.slice(0, 20)) bounds.progress?.(`  ${fault}`)
      }
      const notes = bounds.broken === undefined ? cases.notes?.() : undefined
      if (notes !== undefined) result.notes = notes
    } finally {
      await cases.close()
    }
  } finally {
    remove()
    process.off('exit', remove)
  }
  result.seconds = Math.round((performance.now() - began) / 1000)
  return result
}

function brokenBuildOf(trial: Trial, name: string): Trial['broken'][string] {
  const build = trial.broken[name]
  if (build === undefined)
    throw new Error(`The trial ${trial.name} has no broken build ${name}. It has: ${Object.keys(trial.broken).join(', ')}.`)
  return build
}

/** A directory in memory where there is room: a SIGKILL and a recorded power cut ask nothing of the disk itself. */
function fastDirectory(): string {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    return bavail * bsize > 2 * 1024 ** 3 ? '/dev/shm' : tmpdir()
  } catch {
    return tmpdir()
  }
}
