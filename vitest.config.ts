import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { filesToLeaveOut } from './test/support/sqlite-only.ts'

// boxes and commands are started many hundred times: what Node compiled once is kept for the next
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/compiled', import.meta.url))

/** The directories of boxes are in memory where there is room for them: what a box syncs to a disk takes longer than most tests. */
function temporary(): Record<string, string> {
  const memory = '/dev/shm'
  try {
    const { bavail, bsize } = statfsSync(memory)
    if (bavail * bsize < 2 * 1024 ** 3) return {}
    const directory = mkdtempSync(`${memory}/pillarbox-`)
    // some tests run programs as another user
    chmodSync(directory, 0o1777)
    // with what was left by workers that were ended
    process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
    return { TMPDIR: directory }
  } catch {
    return {}
  }
}

/** Tests beside real programs (the packages are named in .ci/run), in other machines, and those that kill or fuzz for minutes. */
const peers = [
  'test/peers/**/*.test.ts',
  'test/install/**/*.test.ts',
  'test/**/*{killed,restart}*.test.ts',
  'test/torture/short.test.ts',
  'test/{http/fuzz,cards/model,outbound/hostile}.test.ts',
  'test/ops/backup/{damage,full-disk,pages}.test.ts',
  'test/certificates/self-signed.test.ts',
  'test/commands/completion.test.ts',
  'test/contract/{fuzz,routes}.test.ts',
  'test/core/zip.test.ts',
  'test/docs/quickstart.test.ts',
  'test/ops/doctor/{applied,broken,outside}.test.ts',
  'test/keys/rotation.test.ts',
  'test/smtp/receiver-tls.test.ts',
  'test/ops/status/low-disk.test.ts',
  'test/realtime/memory.test.ts',
  'test/reporting/**/*.test.ts',
  'test/store/{durability,portable}.test.ts',
  'test/store/postgres/*.test.ts',
  'test/tokens/{examples,others}.test.ts',
  'test/ops/transfer/{directory,foreign}.test.ts',
  'test/watch/metrics.test.ts',
  'test/webhooks/examples.test.ts',
]

/** Those of them that take longest: what begins last should be short. */
const long = [
  'test/peers/{bare-debian,client-python,schemathesis,screening-looks}.test.ts',
  'test/install/{docker,init,release}.test.ts',
  'test/torture/short.test.ts',
  'test/contract/{fuzz,routes}.test.ts',
  'test/store/postgres/{backup,chosen}.test.ts',
  'test/walks/outbound-restart.test.ts',
]

/** Attacks beside an honest caller: how long others wait and how much memory is held says something on a machine without other work alone. */
const abuse = ['test/abuse/**/*.test.ts']

/** They wait for other programs more than they work. */
const besidePrograms = { maxWorkers: 4, testTimeout: 300_000, hookTimeout: 600_000 }

/** The tests of boxes are run on PostgreSQL: `npm run test:postgres`. */
const onPostgres = process.env['TEST_DATABASE'] === 'postgres'

export default defineConfig({
  test: {
    // Forks that end by SIGTRAP (status 133) were ended by V8, which says why on stderr: `# Fatal process out of memory: Failed to reserve virtual
    // memory for CodeRange` when there is no memory for another thread (`ulimit -v 2000000` and forty idle workers suffice), or a failed check
    // of its own, seen in Node.js 24 under load (nodejs/node#64500). Neither is an error that a program could catch.
    pool: 'forks',
    // Node.js loads TypeScript by itself, as it does for the box
    experimental: { viteModuleRunner: false, nodeLoader: false },
    maxWorkers: 3,
    expect: { poll: { timeout: 100_000 } },
    unstubEnvs: true,
    restoreMocks: true,
    projects: [
      {
        extends: true,
        test: {
          name: 'box',
          include: ['test/**/*.test.ts'],
          exclude: [...peers, ...abuse, ...(onPostgres ? filesToLeaveOut : [])],
          globalSetup: onPostgres ? ['test/support/postgres-run.ts'] : [],
          // loading the box costs more than most tests: a worker keeps it from file to file
          isolate: false,
          setupFiles: ['test/support/memory-check.ts', ...(onPostgres ? ['test/support/leave-out.ts'] : [])],
          env: temporary(),
          // bounds for what must come, on a machine that has much else to do
          testTimeout: 180_000,
          hookTimeout: 120_000,
        },
      },
      // projects begin in the order of their names
      { extends: true, test: { name: 'long', include: long, ...besidePrograms } },
      {
        extends: true,
        test: {
          name: 'peers',
          include: peers,
          exclude: long,
          isolate: false,
          setupFiles: ['test/support/memory-check.ts'],
          ...besidePrograms,
        },
      },
      {
        extends: true,
        test: { name: 'abuse', include: abuse, maxWorkers: 1, testTimeout: 300_000, hookTimeout: 600_000 },
      },
    ],
  },
})
