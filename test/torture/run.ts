import { parseArgs } from 'node:util'
import { goApart, isApart, refuseOtherMachines } from './loopback.ts'
import { append, writePage } from './report.ts'
import { runTrial, type TrialResult } from './runner.ts'
import type { Trial } from './trial.ts'
import { trials } from './trials/all.ts'

const usage = `Usage: npm run torture -- [options]

  --trial NAMES   only these, separated by commas: ${trials.map(({ name }) => name).join(', ')}
  --seed N        the seed of all cases (default: another each time)
  --count N       tries of each trial (default: its goal)
  --hours H       hours for all trials together, each given its share of what is left; all goals take ${Math.round(sumOf(trials))}
  --from CASE     the first case of one trial (default: 0)
  --only CASE     one case of one trial, as a fault was reported for it
  --broken NAME   a build with a deliberate fault, or all of them: the trial must find it
  --here          in the network of this machine, where it may not be left
  --page          only write docs/reliability.md anew
`

const { values: options } = parseArgs({
  options: {
    trial: { type: 'string' },
    seed: { type: 'string' },
    count: { type: 'string' },
    hours: { type: 'string' },
    from: { type: 'string' },
    only: { type: 'string' },
    broken: { type: 'string' },
    here: { type: 'boolean', default: false },
    page: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

/** What has been done of the trial that runs. */
let current: TrialResult | undefined

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => end(signal))
process.on('uncaughtException', (error) => {
  if (current !== undefined) current.findings.push({ case: current.from + current.cases, fault: `threw: ${error.message}` })
  end(error.stack ?? error.message)
})

refuseOtherMachines()
if (options.help) process.stdout.write(usage)
else if (options.page) writePage(trials)
else await run()

async function run(): Promise<void> {
  const chosen = chooseTrials()
  if (!options.here && !isApart()) await leave(chosen)
  const seed = options.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : numberOf('seed', options.seed)
  const last = options.hours === undefined ? undefined : performance.now() + numberOf('hours', options.hours) * 3_600_000
  let hoursLeft = sumOf(chosen)
  for (const trial of chosen) {
    const missing = trial.missing?.()
    if (missing !== undefined) {
      process.stderr.write(`${trial.name} is skipped: ${missing}\n`)
      process.exitCode = 1
      hoursLeft -= trial.hours
      continue
    }
    const builds = buildsOf(trial)
    for (const broken of builds) {
      // each trial has its share of what is left, by the hours that it takes, each build its share of that
      const hours = trial.hours / builds.length
      const time = last === undefined ? undefined : ((last - performance.now()) * hours) / hoursLeft
      hoursLeft -= hours
      await one(trial, { seed, time, broken })
    }
  }
  writePage(trials)
}

/** Goes on in a network of its own, once all is there that the trials need of other machines. */
async function leave(chosen: readonly Trial[]): Promise<void> {
  for (const trial of chosen) {
    if (trial.missing?.() !== undefined) continue
    try {
      await trial.fetch?.()
    } catch (error) {
      fail(`What ${trial.name} needs could not be fetched: ${(error as Error).message}\n`)
    }
  }
  fail(`${goApart()} With --here the trials run in the network of this machine.\n`)
}

async function one(
  trial: Trial,
  { seed, time, broken }: { seed: number; time: number | undefined; broken: string | undefined },
): Promise<void> {
  const only = options.only === undefined ? undefined : numberOf('only', options.only)
  const tries = only !== undefined ? 1 : options.count !== undefined ? numberOf('count', options.count) : trial.goal.tries
  let result: TrialResult
  try {
    result = await runTrial(trial, {
      seed,
      tries,
      from: only ?? (options.from === undefined ? 0 : numberOf('from', options.from)),
      progress: (line) => void process.stderr.write(`${line}\n`),
      began: (begun) => (current = begun),
      ...(time === undefined ? {} : { time }),
      ...(broken === undefined ? {} : { broken }),
    })
  } catch (error) {
    process.stderr.write(`${trial.name} has ended: ${(error as Error).message}\n`)
    process.exitCode = 1
    record((error as Error).message)
    return
  }
  const found = result.findings.length
  const done = broken === undefined && result.tries < tries ? `${result.tries} of ${tries}` : result.tries
  process.stdout.write(
    `${trial.name}${broken === undefined ? '' : ` with ${broken}`}: ${done} ${trial.goal.unit} in ${result.seconds} s, seed ${seed}, ${found} faults\n`,
  )
  for (const note of result.notes ?? []) process.stdout.write(`  ${note}\n`)
  for (const number of new Set(result.findings.map((finding) => finding.case)))
    process.stdout.write(
      `  npm run torture -- --trial ${trial.name} --seed ${seed} --only ${number}${broken === undefined ? '' : ` --broken ${broken}`}\n`,
    )
  record()
  // a build without a fault has none, one with a fault has it found
  if (broken === undefined ? found > 0 : found === 0) process.exitCode = 1
  // what hangs goes on in this process
  if (result.ended !== undefined) {
    writePage(trials)
    end(result.ended)
  }
}

/** Notes what was done of the trial that ran, and why it ended early. */
function record(ended?: string): void {
  const result = current
  current = undefined
  if (result === undefined || options.only !== undefined) return
  if (result.cases + result.findings.length > 0) append(ended === undefined ? result : { ...result, ended })
}

/** Ends the run, with what it did until now noted. */
function end(why: string): void {
  process.stderr.write(`The run ends early: ${why}\n`)
  record(why.split('\n')[0])
  process.exit(1)
}

/** The hours that the goals of these trials take. */
function sumOf(those: readonly Trial[]): number {
  return those.reduce((sum, { hours }) => sum + hours, 0)
}

function chooseTrials(): Trial[] {
  const names = options.trial?.split(',')
  const unknown = names?.filter((name) => !trials.some((trial) => trial.name === name)) ?? []
  if (unknown.length > 0) fail(`There is no trial ${unknown.join(', ')}.\n\n${usage}`)
  if ((options.only ?? options.from) !== undefined && names?.length !== 1)
    fail('--only and --from need one --trial and its --seed.\n')
  return trials.filter(({ name }) => names === undefined || names.includes(name))
}

function buildsOf(trial: Trial): (string | undefined)[] {
  if (options.broken === undefined) return [undefined]
  return options.broken === 'all' ? Object.keys(trial.broken) : [options.broken]
}

function numberOf(option: string, text: string): number {
  const number = Number(text)
  if (!Number.isFinite(number) || number < 0) fail(`--${option} must be a number: ${text}\n`)
  return number
}

function fail(text: string): never {
  process.stderr.write(text)
  process.exit(2)
}
