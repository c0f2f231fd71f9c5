import { existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { checkout, makeBuild } from './builds.ts'
import type { CaseResult, Cases, Trial } from './trial.ts'

/** Cases that throw one after the other, after which the trial ends. */
const maxThrown = 3

const minute = 60_000

/** Milliseconds for a case, with the opening of its trial: the longest take some ten minutes. */
const usualDeadline = 30 * minute

/** Milliseconds for a trial to close. */
const closing = 5 * minute

export interface Bounds {
  seed: number
  /** The number of the first case. */
  from?: number
  /** Tries after which no further case begins. */
  tries?: number
  /** Milliseconds after which no further case begins. */
  time?: number
  /** Milliseconds for one case; the trial ends with one that takes longer. */
  deadline?: number
  /** The name of the broken build that is tried; the first fault ends it. */
  broken?: string
  /** Runs the short form, for the tests. */
  short?: boolean
  /** Ends at the first case with a fault. */
  first?: boolean
  /** Told of each case. */
  progress?: (line: string) => void
  /** Given the result as it begins; it is up to date after each case. */
  began?: (result: TrialResult) => void
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
  /** Why it ended before its bounds. */
  ended?: string
}

/**
 * Runs the cases of a trial one after the other, as long as its bounds allow. A case that throws is a finding, after which the trial is opened anew.
 * One that does not end in time is a finding too, and the result says that it ended early: it cannot be stopped, so that the process must end.
 * Rejects only where a program is missing, or there is no such build.
 */
export async function runTrial(trial: Trial, bounds: Bounds): Promise<TrialResult> {
  const directory = mkdtempSync(join(fastDirectory(), 'pillarbox-torture-'))
  // a box of a case that hangs may still write
  const remove = (): void => rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  process.once('exit', remove)
  const began = performance.now()
  const from = bounds.from ?? 0
  const deadline = bounds.deadline ?? usualDeadline
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
  bounds.began?.(result)
  try {
    const program =
      bounds.broken === undefined ? checkout : makeBuild(brokenBuildOf(trial, bounds.broken), join(directory, 'program'))
    const work = join(directory, 'work')
    let cases: Cases | undefined
    let thrown = 0
    const close = async (number: number): Promise<void> => {
      const open = cases
      cases = undefined
      try {
        if (open !== undefined) await within(Math.min(deadline, closing), open.close())
      } catch (error) {
        if (error instanceof Late) result.ended ??= `its closing ${error.message}`
        result.findings.push({ case: number, fault: `threw as it was closed: ${messageOf(error)}` })
      }
      rmSync(work, { recursive: true, force: true, maxRetries: 5 })
    }
    const mayGoOn = (): boolean =>
      result.ended === undefined &&
      thrown < maxThrown &&
      result.tries < (bounds.tries ?? Infinity) &&
      performance.now() - began < (bounds.time ?? Infinity) &&
      !((bounds.first || bounds.broken !== undefined) && result.findings.length > 0)
    const run = async (number: number): Promise<CaseResult> => {
      if (cases === undefined) mkdirSync(work)
      cases ??= await trial.open({ directory: work, program, seed: bounds.seed, short: bounds.short ?? false })
      return cases.run(number)
    }
    const tried = async (number: number): Promise<CaseResult> => {
      try {
        const one = await within(deadline, run(number))
        thrown = 0
        return one
      } catch (error) {
        if (error instanceof Late) {
          result.ended = `case ${number} ${error.message}`
          return { tries: 0, faults: [error.message] }
        }
        if (saysMissing(error)) throw error
        thrown += 1
        return { tries: 0, faults: [`threw: ${messageOf(error)}`] }
      }
    }
    let number = from
    try {
      for (; mayGoOn(); number++) {
        const { tries, faults } = await tried(number)
        result.cases += 1
        result.tries += tries
        result.seconds = Math.round((performance.now() - began) / 1000)
        for (const fault of faults) result.findings.push({ case: number, fault })
        bounds.progress?.(`${trial.name} case ${number}: ${result.tries} ${trial.goal.unit}, ${faults.length} faults`)
        for (const fault of faults.slice(0, 20)) bounds.progress?.(`  ${fault}`)
        if (thrown > 0) await close(number)
      }
      const notes = bounds.broken === undefined ? cases?.notes?.() : undefined
      if (notes !== undefined) result.notes = notes
    } finally {
      await close(number)
    }
  } finally {
    remove()
    process.off('exit', remove)
  }
  result.seconds = Math.round((performance.now() - began) / 1000)
  return result
}

/** What did not end in time. */
class Late extends Error {}

/** Rejects with Late when it takes longer than so many milliseconds. */
async function within<Result>(milliseconds: number, work: Promise<Result>): Promise<Result> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Late(`has not ended within ${milliseconds / minute} minutes`)), milliseconds)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Whether it says that a program of the machine is missing: nothing was tried then. */
function saysMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, syscall = '', path = '' } = error as NodeJS.ErrnoException
  // it is the same error where the directory to start in is missing
  const isThere = (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(resolve(folder, path)))
  return (
    (code === 'ENOENT' && syscall.startsWith('spawn') && !isThere) ||
    error.message.includes('is not installed') ||
    saysMissing(error.cause)
  )
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
