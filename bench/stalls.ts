import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

// imported before the program by `--import`: USR2 begins anew, the exit writes the longest stall in milliseconds to BENCH_STALLS_FILE
const file = process.env['BENCH_STALLS_FILE']
if (isMainThread && file !== undefined) {
  // its timer fires each millisecond, so what it sees beyond that is a stall
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  process.on('SIGUSR2', () => delay.reset())
  process.on('exit', () => {
    // it counts in nanoseconds
    writeFileSync(file, JSON.stringify({ longest: delay.max / 1e6, p99: delay.percentile(99) / 1e6 }))
  })
}
