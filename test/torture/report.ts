import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeMachine } from '../../bench/machine.ts'
import { checkout } from './builds.ts'
import type { TrialResult } from './runner.ts'
import type { Trial } from './trial.ts'

const [results, page] = ['test/torture/results.jsonl', 'docs/reliability.md']
const mended = fileURLToPath(new URL('mended.json', import.meta.url))

/** A line of results.jsonl. */
interface Entry extends TrialResult {
  at: string
  commit: string
  machine: string[]
}

/** A fault of the box that a trial found, and the test that it got. */
interface Mended {
  trial: string
  fault: string
  test: string
}

/** Adds a result to test/torture/results.jsonl. */
export function append(result: TrialResult): void {
  const entry: Entry = {
    ...result,
    findings: result.findings.slice(0, 20),
    at: new Date().toISOString(),
    commit: checkedOut(),
    machine: describeMachine(tmpdir()),
  }
  appendFileSync(join(checkout, results), `${JSON.stringify(entry)}\n`)
}

/** The commit, and whether anything but the results differs from it. */
function checkedOut(): string {
  const changed = git('status', '--porcelain', '--untracked-files=no', '--', `:!${results}`, `:!${page}`)
  return `${git('describe', '--always', '--exclude', '*')}${changed === '' ? '' : '-dirty'}`
}

function git(...words: string[]): string {
  return execFileSync('git', words, { cwd: checkout, encoding: 'utf8' }).trim()
}

/** Writes docs/reliability.md from the results. */
export function writePage(trials: Trial[]): void {
  const entries = existsSync(join(checkout, results))
    ? readFileSync(join(checkout, results), 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Entry)
    : []
  const faults = existsSync(mended) ? (JSON.parse(readFileSync(mended, 'utf8')) as Mended[]) : []
  writeFileSync(join(checkout, page), `${pageOf(trials, entries, faults)}\n`)
}

function pageOf(trials: Trial[], entries: Entry[], faults: Mended[]): string {
  const whole = entries.filter(({ broken }) => broken === null)
  return [
    '# Reliability',
    '',
    '<!-- Written by `npm run torture` from test/torture/results.jsonl. -->',
    '',
    'What [the promises](promises.md) were tried with: trials that kill the box, cut its power, fail its disk, move its clock, crowd it, and send it broken mail and',
    'calls, at scale. All of them run on one machine and talk to it alone, once the packages are there of what boxes are tried with. Each follows from a seed,',
    'so that a case that found a fault can be repeated:',
    '',
    '    npm run torture -- --trial kills --seed 1 --count 100',
    '    npm run torture -- --trial kills --seed 1 --only 17',
    '    npm run torture -- --hours 8',
    '',
    'For each trial there are builds of the box with a deliberate fault (`--broken NAME`), which the trial must find: a trial that cannot fail proves',
    'nothing. A short form of each trial is `test/torture/short.test.ts`.',
    '',
    '| Trial | Goal | Done | Faults in the last run |',
    '|---|---|---|---|',
    ...trials.map((trial) =>
      summaryOf(
        trial,
        whole.filter((entry) => entry.trial === trial.name),
      ),
    ),
    '',
    ...trials.flatMap((trial) =>
      sectionOf(
        trial,
        entries.filter((entry) => entry.trial === trial.name),
        faults.filter((fault) => fault.trial === trial.name),
      ),
    ),
  ]
    .join('\n')
    .trimEnd()
}

function summaryOf({ name, goal }: Trial, runs: Entry[]): string {
  const last = runs.at(-1)
  const done = runs.reduce((sum, { tries }) => sum + tries, 0)
  const target = `${goal.tries.toLocaleString('en')} ${goal.unit}: ${goal.faults}`
  return `| [${name}](#${name}) | ${target} | ${done.toLocaleString('en')} | ${last === undefined ? 'not run yet' : last.findings.length} |`
}

function sectionOf({ name, about, goal, broken }: Trial, entries: Entry[], faults: Mended[]): string[] {
  const runs = entries.filter((entry) => entry.broken === null)
  const lines = [`## ${name}`, '', wrapped(about), '']
  if (runs.length > 0) {
    lines.push(`| Date | Commit | Seed | ${goal.unit} | Time | Faults |`, '|---|---|---|---|---|---|')
    for (const { at, commit, seed, tries, seconds, findings } of runs.slice(-10))
      lines.push(
        `| ${at.slice(0, 16).replace('T', ' ')} | ${commit} | ${seed} | ${tries.toLocaleString('en')} | ${seconds} s | ${findings.length} |`,
      )
    lines.push('', wrapped(`The last run was on: ${runs.at(-1)!.machine.join('; ')}.`), '')
  }
  const notes = runs.at(-1)?.notes ?? []
  if (notes.length > 0) lines.push('Counted in the last run:', '', ...notes.map((note) => `- ${note}`), '')
  if (faults.length > 0) lines.push('Found and mended:', '', ...faults.map(({ fault, test }) => `- ${fault} (${test})`), '')
  lines.push('Broken builds:', '')
  for (const [build, { what, file }] of Object.entries(broken))
    lines.push(`- \`${build}\`, in \`${file}\`: ${what}. ${caughtBy(build, entries)}`)
  return [...lines, '']
}

function caughtBy(build: string, entries: Entry[]): string {
  const last = entries.findLast(({ broken }) => broken === build)
  const finding = last?.findings[0]
  if (last === undefined) return 'Not tried yet.'
  if (finding === undefined) return `Not found in ${last.tries} tries with seed ${last.seed}.`
  return `Found in case ${finding.case} of seed ${last.seed}: ${finding.fault.split('\n')[0]!.slice(0, 200)}.`
}

/** Lines of at most 150 characters. */
function wrapped(text: string): string {
  return text.replaceAll(/(.{1,150})(?: |$)/g, '$1\n').trimEnd()
}
