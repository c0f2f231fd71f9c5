import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeMachine } from '../../bench/machine.ts'
import { checkout } from './builds.ts'
import type { Finding, TrialResult } from './runner.ts'
import type { Trial } from './trial.ts'

const [results, page] = ['test/torture/results.jsonl', 'docs/reliability.md']
const mended = fileURLToPath(new URL('mended.json', import.meta.url))

/** A line of results.jsonl. */
export interface Entry extends TrialResult {
  /** When it was written; no two lines are of the same time. */
  at: string
  commit: string
  machine: string[]
  /** How many there were where only the first findings are noted. */
  faults?: number
}

/** What a trial found. */
export interface Mended {
  trial: string
  /** What was at fault: the box (where it is not said), the trial's idea of what is right, or a bound that it set. */
  kind?: 'box' | 'oracle' | 'bound'
  fault: string
  /** The test that a fault of the box got; none: it is not mended. */
  test?: string
  /** The findings of noted runs that it explains: all of a run, or those of a case, or that say so. */
  found?: { at: string; case?: number; says?: string }[]
}

/** The findings of a run that are noted. */
const mostFindings = 20

/** What explains a finding of a run. */
export function explanationOf(finding: Finding, { at, trial }: Entry, faults: readonly Mended[]): Mended | undefined {
  return faults.find(
    (fault) =>
      fault.trial === trial &&
      fault.found?.some(
        (one) =>
          one.at === at &&
          (one.case === undefined || one.case === finding.case) &&
          (one.says === undefined || finding.fault.includes(one.says)),
      ),
  )
}

/** All runs that are noted. */
export function readEntries(): Entry[] {
  if (!existsSync(join(checkout, results))) return []
  const lines = readFileSync(join(checkout, results), 'utf8').split('\n')
  return lines.filter(Boolean).map((line) => JSON.parse(line) as Entry)
}

export function readMended(): Mended[] {
  return existsSync(mended) ? (JSON.parse(readFileSync(mended, 'utf8')) as Mended[]) : []
}

/** Adds a result to test/torture/results.jsonl. */
export function append(result: TrialResult): void {
  const entry: Entry = {
    ...result,
    findings: result.findings.slice(0, mostFindings),
    ...(result.findings.length > mostFindings ? { faults: result.findings.length } : {}),
    at: new Date().toISOString(),
    commit: checkedOut(),
    machine: describeMachine(tmpdir()),
  }
  // paths are those of the checkout
  appendFileSync(join(checkout, results), `${JSON.stringify(entry).replaceAll(checkout, '.')}\n`)
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
  writeFileSync(join(checkout, page), `${pageOf(trials, readEntries(), readMended())}\n`)
}

/** The page of these runs. */
export function pageOf(trials: Trial[], entries: Entry[], faults: Mended[]): string {
  const isClean = cleanness()
  const noted = trials.map((trial) => ({
    trial,
    entries: entries.filter((entry) => entry.trial === trial.name),
    faults: faults.filter((fault) => fault.trial === trial.name),
  }))
  return [
    '# Reliability',
    '',
    '<!-- Written by `npm run torture` from test/torture/results.jsonl. -->',
    '',
    'What [the promises](promises.md) were tried with: trials that kill the box, cut its power, fail its disk, move its clock, crowd it, and send it broken mail and',
    'calls, at scale. All of them run on one machine, in a network namespace that has its loopback interface alone, once the packages are there of what boxes are',
    'tried with; where there is none (`--here`, and the short form), TCP connections of the harness to other machines are refused, and other processes are not',
    'watched. What a case does follows from a seed and its number, so that it can be planned anew; when concurrent clients, threads and disks do it does not, so',
    'that a fault which rests on a moment may need many repetitions. What is made smaller is a message that the box did not take well (mail), and a dialogue with a fault (smtp).',
    '',
    '    npm run torture -- --trial kills --seed 1 --count 100',
    '    npm run torture -- --trial kills --seed 1 --only 17',
    '    npm run torture -- --hours 8',
    '',
    'For each trial there are builds of the box with a deliberate fault (`--broken NAME`), which the trial must find: a trial that cannot fail proves',
    'nothing. A short form of each trial is `test/torture/short.test.ts`.',
    '',
    '“Done” counts the tries of runs on a commit of this history, without a change, of whose faults each is explained and, if it was of the box, mended; later commits',
    'may have changed the box, and what a trial looks at (`git log COMMIT.. -- src test/torture`, from the last of them). “Without a fault” counts the tries of those of these runs in which nothing',
    'was found. “All tries” counts all runs. What is at fault is the box, the oracle (what the trial took for right), or a bound that the trial set. Faults of the box',
    'were also found in runs that are not noted. A commit with `-dirty` was tried with changes.',
    '',
    '| Trial | Goal | Done | Last done on | Without a fault | All tries | Faults found | In the last run |',
    '|---|---|---|---|---|---|---|---|',
    ...noted.map((one) => summaryOf(one, isClean)),
    '',
    ...noted.flatMap((one) => sectionOf(one)),
  ]
    .join('\n')
    .trimEnd()
}

/** What is noted of a trial. */
interface Noted {
  trial: Trial
  entries: Entry[]
  faults: Mended[]
}

/** Tells whether a run was of a commit of the history, without a change. */
function cleanness(): (entry: Entry) => boolean {
  const isWhole = git('rev-parse', '--is-shallow-repository') === 'false'
  const commits = isWhole ? git('rev-list', 'HEAD').split('\n') : []
  return ({ commit }) => !commit.endsWith('-dirty') && (!isWhole || commits.some((one) => one.startsWith(commit)))
}

function summaryOf({ trial: { name, goal }, entries, faults }: Noted, isClean: (entry: Entry) => boolean): string {
  const runs = entries.filter(({ broken }) => broken === null)
  const proving = runs.filter(
    (entry) => isClean(entry) && entry.findings.every((finding) => isMended(explanationOf(finding, entry, faults))),
  )
  const target = `${goal.tries.toLocaleString('en')} ${goal.unit}: ${goal.faults}`
  const unexplained = runs.flatMap((entry) =>
    entry.findings.filter((finding) => explanationOf(finding, entry, faults) === undefined),
  )
  const found = (['box', 'oracle', 'bound'] as const).map(
    (kind) => [faults.filter((fault) => kindOf(fault) === kind).length, kind] as const,
  )
  const counts = [...found, [unexplained.length, 'unexplained'] as const].filter(([count]) => count > 0)
  const last = runs.at(-1)
  return `| ${[
    `[${name}](#${name})`,
    target,
    sumOf(proving),
    proving.at(-1)?.commit ?? '–',
    sumOf(proving.filter(({ findings }) => findings.length === 0)),
    sumOf(runs),
    counts.map(([count, kind]) => `${count} ${kind}`).join(', ') || '0',
    last === undefined ? 'not run yet' : countOf(last),
  ].join(' | ')} |`
}

function kindOf({ kind = 'box' }: Mended): string {
  return kind
}

/** Whether it is none of the box, or has its test. */
function isMended(fault: Mended | undefined): boolean {
  return fault !== undefined && (kindOf(fault) !== 'box' || fault.test !== undefined)
}

function sumOf(runs: readonly Entry[]): string {
  return runs.reduce((sum, { tries }) => sum + tries, 0).toLocaleString('en')
}

function countOf({ faults, findings }: Entry): number {
  return faults ?? findings.length
}

function sectionOf({ trial: { name, about, goal, broken }, entries, faults }: Noted): string[] {
  const runs = entries.filter((entry) => entry.broken === null)
  const lines = [`## ${name}`, '', wrapped(about), '']
  if (runs.length > 0) {
    const shown = runs.filter((entry, index) => index >= runs.length - 10 || entry.findings.length > 0)
    lines.push(`| Date | Commit | Seed | ${goal.unit} | Time | Faults |`, '|---|---|---|---|---|---|')
    for (const entry of shown) lines.push(rowOf(entry, faults))
    const hidden = runs.filter((entry) => !shown.includes(entry))
    if (hidden.length > 0)
      lines.push(
        '',
        `Besides, ${hidden.length} runs before these, of ${sumOf(hidden)} ${goal.unit}, without a fault (test/torture/results.jsonl).`,
      )
    lines.push('', wrapped(`The last run was on: ${runs.at(-1)!.machine.join('; ')}.`), '')
  }
  const notes = runs.at(-1)?.notes ?? []
  if (notes.length > 0) lines.push('Counted in the last run:', '', ...notes.map((note) => `- ${note}`), '')
  if (faults.length > 0) lines.push('Found:', '', ...faults.map((fault) => foundOf(fault)), '')
  lines.push('Broken builds:', '')
  for (const [build, { what, file }] of Object.entries(broken))
    lines.push(`- \`${build}\`, in \`${file}\`: ${what}. ${caughtBy(build, entries)}`)
  const former = new Set(entries.flatMap((entry) => (entry.broken === null || entry.broken in broken ? [] : [entry.broken])))
  for (const build of former) lines.push(`- \`${build}\`, which is no longer made. ${caughtBy(build, entries)}`)
  return [...lines, '']
}

function rowOf(entry: Entry, faults: readonly Mended[]): string {
  const { at, commit, seed, tries, seconds, findings, ended } = entry
  const kinds = new Set(
    findings.map((finding) => {
      const fault = explanationOf(finding, entry, faults)
      return fault === undefined ? 'unexplained' : kindOf(fault)
    }),
  )
  const early = ended === undefined ? '' : `, ended early: ${ended.slice(0, 80).replaceAll('|', '/')}`
  const count = kinds.size === 0 ? '0' : `${countOf(entry)}: ${[...kinds].join(', ')}`
  return `| ${dateOf(at)} | ${commit} | ${seed} | ${tries.toLocaleString('en')} | ${seconds} s${early} | ${count} |`
}

function foundOf(fault: Mended): string {
  const dates = new Set(fault.found?.map(({ at }) => dateOf(at)))
  const where = dates.size === 0 ? '' : `, ${[...dates].join(' and ')}`
  const test = fault.test ?? (kindOf(fault) === 'box' ? 'not mended' : undefined)
  return `- ${kindOf(fault)}${where}: ${fault.fault}${test === undefined ? '' : ` (${test})`}`
}

function dateOf(at: string): string {
  return at.slice(0, 16).replace('T', ' ')
}

function caughtBy(build: string, entries: Entry[]): string {
  const last = entries.findLast(({ broken }) => broken === build)
  const finding = last?.findings[0]
  if (last === undefined) return 'Not tried yet.'
  if (finding === undefined) return `Not found in ${last.tries} tries with seed ${last.seed} on ${last.commit}.`
  return `Found in case ${finding.case} of seed ${last.seed} on ${last.commit}: ${finding.fault.split('\n')[0]!.slice(0, 200)}.`
}

/** Lines of at most 150 characters. */
function wrapped(text: string): string {
  return text.replaceAll(/(.{1,150})(?: |$)/g, '$1\n').trimEnd()
}
