import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Finding } from './finding.ts'
import { quiet } from './machine.ts'

/** What one bench found, and under what load of the machine. */
export interface Result {
  bench: string
  findings: Finding[]
  /** Load averages of one minute; the second includes the bench's own. */
  load: { before: number; after: number }
  rounds: number
  /** Part of the full amount of work. */
  scale: number
  /** When it ended, ISO 8601. */
  at: string
  /** What was measured; `-dirty` with changes that are not committed. */
  commit?: string
}

/** The newest result of each bench, that before it, and what they were taken on. */
interface Results {
  machine: string[]
  results: Record<string, Result>
  before: Record<string, Result>
}

const kept = fileURLToPath(new URL('results.json', import.meta.url))
const reasons = fileURLToPath(new URL('reasons.md', import.meta.url))
const heading = '## Performance'
const page = fileURLToPath(new URL('../docs/promises.md', import.meta.url))

/** Prints a result to standard output. */
export function tell({ findings }: Result): void {
  for (const { goal, what, against, wanted, reached, met, by, figures } of findings) {
    process.stdout.write(
      `${goal}: ${what}, against ${against}: ${reached}, wanted ${wanted}: ${met === null ? '' : met ? 'met, ' : 'NOT met, '}${by}\n`,
    )
    for (const line of figures) process.stdout.write(`    ${line}\n`)
  }
}

/** Keeps the result, and the one before, and writes the performance section of `docs/promises.md` anew from all that are kept. */
export function write(result: Result, machine: string[]): void {
  const { results, before }: Omit<Results, 'machine'> = existsSync(kept) ? keptResults() : { results: {}, before: {} }
  const { [result.bench]: last } = results
  const all: Results = {
    machine,
    results: { ...results, [result.bench]: result },
    before: last === undefined ? before : { ...before, [result.bench]: last },
  }
  writeFileSync(kept, `${JSON.stringify(all, null, 2)}\n`)
  writeSection(all)
}

/** Writes the performance section of `docs/promises.md` anew from what is kept, as when only the reasons have changed. */
export function writePage(): void {
  writeSection(keptResults())
}

function keptResults(): Results {
  return JSON.parse(readFileSync(kept, 'utf8')) as Results
}

/** Replaces the last section of the page, which begins with its heading. */
function writeSection(all: Results): void {
  const text = readFileSync(page, 'utf8')
  const start = text.indexOf(`\n${heading}\n`)
  if (start < 0) throw new Error(`${page} has no “${heading}”.`)
  writeFileSync(page, `${text.slice(0, start + 1)}${document(all)}`)
}

function document({ machine, results, before }: Results): string {
  const all = Object.values(results)
  const earlier = Object.values(before).flatMap(({ findings: found }) => found)
  const reachedBefore = ({ goal, what, against }: Finding): string =>
    earlier.find((one) => one.goal === goal && one.what === what && one.against === against)?.reached ?? '–'
  const findings = all.flatMap(({ findings: found }) => found).toSorted((one, other) => numberOf(one) - numberOf(other))
  return `${heading}

This section is written by \`npm run bench -- --write\`; do not edit it. The reasons are in \`bench/reasons.md\`.

An absolute figure says more about the machine than about the box, so each goal is a ratio to a named peer or bare library that does the same
work in the same run, in turn (A B A B …), after a warm-up: of incoming mail 15,000 messages, or ten rounds of large ones, in which a box compiles what it runs. Ratios are
of medians; figures read \`median (min–max)\`. CPU is user and system time of the whole process tree, as the kernel counts it. Memory is the peak of
resident memory (VmHWM). Everything runs on loopback. The box is a process of its own, started by \`bin/pillarbox\` with its usual settings, except: no
greeting delay, and limits out of the way (calls are still counted). SPF, DKIM and DMARC are looked up for real, in a name server in a process of its own.

### Goals

| # | What | Against | Wanted | Reached | The run before | |
|---|---|---|---|---|---|---|
${findings.map((found) => `| ${found.goal} | ${found.what} | ${found.against} | ${found.wanted} | ${found.reached} | ${reachedBefore(found)} | ${found.met === null ? '' : found.met ? 'met, ' : '**not met**, '}${found.by} |`).join('\n')}

P20 belongs to a machine that is not here yet.

${readFileSync(reasons, 'utf8').trim()}

### Figures

${findings.map((found) => `- ${found.goal}, ${found.what}: ${found.figures.join('; ')}`).join('\n')}

### The machine

${machine.map((line) => `- ${line}`).join('\n')}

Sender, box and peer share its cores. Load of the minute before each bench (nothing is written above ${quiet}, where others are at work):

${[...all, ...Object.values(before)]
  .toSorted((one, other) => one.at.localeCompare(other.at))
  .map(
    ({ bench, load, rounds, scale, at, commit }) =>
      `- ${bench}: ${load.before.toFixed(2)}, ${rounds} rounds${scale === 1 ? '' : ` of ${scale} of the work`}, ended ${at}${commit === undefined ? '' : `, commit ${commit}`}`,
  )
  .join('\n')}

### How to run

\`\`\`
apt install postfix gcc        # smtp-source, the peer, and the shim of the slow disk; Exim and OpenSMTPD are downloaded by apt and not installed
npm run bench                  # all of it; as root, because Postfix must start as root
npm run bench -- plain real    # these only; a name that there is not lists them
npm run bench -- --rounds 1 --scale 0.2 --messages 20000     # a quick look
npm run bench -- --wait 10 --write                           # wait up to 10 minutes for a quiet machine before each, and write this page; a bench is left out where it never is
npm run bench -- --page                                      # measure nothing, write this page anew from bench/results.json and bench/reasons.md
\`\`\`

Haraka is installed by npm into a directory outside the project (\`BENCH_HARAKA_DIR\`, else one in the system's temporary directory); without it P2 is left out.
mox stands beside them where \`BENCH_MOX\` names its binary (\`go build\` in its repository). A peer that cannot be had is named and left out.
The mailbox of P12 takes about 5 GB in the temporary directory (\`TMPDIR\`).

That nothing answered with 250 is ever lost is not a matter of speed, but of the same machine: a hundred kills under load ([reliability.md](reliability.md)) are

\`\`\`
npm run torture -- --trial kills --count 100
\`\`\`
`
}

function numberOf({ goal }: Finding): number {
  return Number(goal.slice(1))
}
