/** What a trial is given: where it works, and the build of the program that it tries. */
export interface Setting {
  /** An empty directory of the trial's own. */
  directory: string
  /** The root of the program: the checkout, or a copy of it with a deliberate fault. */
  program: string
  seed: number
  /** Cases may be the beginnings of those that the same seed has otherwise. */
  short?: boolean
}

/** The cases of a trial that was opened; each follows from the seed and its number alone. */
export interface Cases {
  run(number: number): Promise<CaseResult>
  /** What was counted over all cases, besides the faults. */
  notes?(): string[]
  close(): Promise<void>
}

export interface CaseResult {
  /** How many tries of the trial's unit the case was. */
  tries: number
  /** A sentence for each promise that was broken. */
  faults: string[]
}

/** A replacement in one source file that makes a build which the trial must catch. */
export interface BrokenBuild {
  what: string
  file: string
  find: string
  replace: string
}

export interface Trial {
  name: string
  /** What is done to the box, and what must hold. */
  about: string
  goal: { tries: number; unit: string; faults: string }
  /** Tries of the short form, which the tests run; 0: it takes too long for them. */
  short: number
  /** Hours that the goal takes, alone on two cores: what share of a run's time the trial is given. */
  hours: number
  broken: Record<string, BrokenBuild>
  /** Why the trial cannot run on this machine; undefined where it can. */
  missing?: () => string | undefined
  /** Fetches what it needs of other machines and is not here yet: a trial that runs reaches none. */
  fetch?: () => Promise<void>
  open(setting: Setting): Promise<Cases>
}

/** The seed of one case. */
export function caseSeed(seed: number, number: number): number {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(number + 1, 0xc2b2ae35)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d)
  return (mixed ^ (mixed >>> 13)) >>> 0
}
