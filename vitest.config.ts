import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// boxes and commands are started many hundred times: what Node compiled once is kept for the next
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/compiled', import.meta.url))

export default defineConfig({
  test: {
    pool: 'forks',
    // loading the box costs more than most tests: a worker keeps it from file to file
    isolate: false,
    maxWorkers: 3,
    // bounds for what must come, on a machine that has much else to do
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    include: ['test/**/*.test.ts'],
    unstubEnvs: true,
    restoreMocks: true,
  },
})
