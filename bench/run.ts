import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Bench } from './finding.ts'
import { attachment } from './goals/attachment.ts'
import { boxes } from './goals/boxes.ts'
import { calls } from './goals/calls.ts'
import { waiting } from './goals/deferred.ts'
import { creates } from './goals/creates.ts'
import { dispatch } from './goals/dispatch.ts'
import { fanOut } from './goals/fan-out.ts'
import { firstView } from './goals/first-view.ts'
import { footprint } from './goals/footprint.ts'
import { growth } from './goals/growth.ts'
import { install } from './goals/install.ts'
import { large } from './goals/large.ts'
import { live } from './goals/live.ts'
import { million } from './goals/million.ts'
import { outbound } from './goals/outbound.ts'
import { plain } from './goals/plain.ts'
import { policies } from './goals/policies.ts'
import { prompt } from './goals/prompt.ts'
import { real } from './goals/real.ts'
import { slowedIngest } from './goals/slow-disk.ts'
import { tools } from './goals/tools.ts'
import { describeMachine, quiet, waitForQuiet } from './machine.ts'
import { type Result, tell, write, writePage } from './report.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

const benches: Bench[] = [
  plain,
  real,
  attachment,
  slowedIngest,
  calls,
  creates,
  tools,
  live,
  prompt,
  fanOut,
  dispatch,
  outbound,
  policies,
  waiting,
  million,
  growth,
  footprint,
  install,
  large,
  firstView,
  boxes,
]

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    scale: { type: 'string', default: '1' },
    messages: { type: 'string', default: '1000000' },
    wait: { type: 'string', default: '0' },
    write: { type: 'boolean', default: false },
    page: { type: 'boolean', default: false },
  },
})

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))

const unknown = names.filter((name) => !benches.some((bench) => bench.name === name))
if (unknown.length > 0) {
  process.stderr.write(`There is no bench ${unknown.join(', ')}. There are: ${benches.map(({ name }) => name).join(', ')}.\n`)
  process.exit(2)
}
if (options.page) {
  writePage()
  process.exit()
}
for (const bench of benches.filter(({ name }) => names.length === 0 || names.includes(name))) {
  const result = await run(bench)
  if (!result) continue
  tell(result)
  if (options.write) write(result, describeMachine(tmpdir()))
}

async function run(bench: Bench): Promise<Result | undefined> {
  const before = await waitForQuiet(Number(options.wait))
  if (options.write && before > quiet) {
    process.stderr.write(
      `${bench.name} is left out, as it would be written: the load is above ${quiet}. A longer --wait waits for less.\n`,
    )
    process.exitCode = 1
    return undefined
  }
  process.stderr.write(`${bench.name} (${bench.goals.join(', ')}), load ${before.toFixed(2)}\n`)
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-bench-'))
  try {
    const [rounds, scale] = [Number(options.rounds), Number(options.scale)]
    const findings = await bench.run({ directory, rounds, scale, messages: Number(options.messages) })
    return {
      bench: bench.name,
      findings,
      load: { before, after: loadavg()[0]! },
      rounds,
      scale,
      at: new Date().toISOString(),
      commit: commit(),
    }
  } catch (error) {
    process.stderr.write(
      `${bench.name} could not run: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    )
    process.exitCode = 1
    return undefined
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The commit of this checkout; `-dirty` if anything but what the bench itself writes has changed since. */
function commit(): string {
  const changed = git('status', '--porcelain', '--', '.', ':!bench/results.json', ':!docs/promises.md')
  return `${git('rev-parse', '--short=8', 'HEAD')}${changed === '' ? '' : '-dirty'}`
}

function git(...words: string[]): string {
  return execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim()
}
