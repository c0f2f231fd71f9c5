import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Bench, finding } from '../finding.ts'
import { boxSide, coldRounds, startIngestBox } from '../ingest.ts'
import { slowDisk } from '../slow-disk.ts'
import { inTurn, shown, spreadOf, warmUp } from '../measure.ts'

/** Every fsync takes 5 ms longer: how much mail still comes in, and how long the event loop ever stands still (P6). */
export const slowedIngest: Bench = {
  name: 'slow-disk',
  goals: ['P6'],
  async run({ directory, rounds, scale }) {
    const work = { message: { size: 4096 }, sessions: 50, messages: Math.round(4000 * scale) }
    const stalls = { usual: join(directory, 'usual.json'), slow: join(directory, 'slow.json') }
    const preload = new URL('../stalls.ts', import.meta.url).href
    const cold = coldRounds(work)
    const usual = await startIngestBox(join(directory, 'usual'), work, cold + rounds, {
      preload,
      env: { BENCH_STALLS_FILE: stalls.usual },
    })
    const slow = await startIngestBox(join(directory, 'slow'), work, cold + rounds, {
      preload,
      env: { BENCH_STALLS_FILE: stalls.slow, ...slowDisk(directory, 5) },
    })
    const sides = [boxSide(usual, work, 'usual disk'), boxSide(slow, work, 'slow disk')]
    try {
      // what the first messages compile is no matter of the disk
      for (const side of sides) await warmUp(side, cold)
      for (const box of [usual, slow]) process.kill(box.pid, 'SIGUSR2')
      const samples = await inTurn(sides, rounds, cold)
      await Promise.all([usual.stop(), slow.stop()])
      const [fast, delayed] = [spreadOf(samples.get('usual disk'), 'msg/s'), spreadOf(samples.get('slow disk'), 'msg/s')]
      const [usualStalls, slowStalls] = [stallsIn(stalls.usual), stallsIn(stalls.slow)]
      return [
        finding({
          goal: 'P6',
          what: 'Ingest of 4 KB plain at 50 sessions, fsync slowed by 5 ms',
          against: 'itself at the usual fsync',
          value: delayed.median / fast.median,
          least: 0.8,
          figures: [`slow ${shown(delayed)} msg/s`, `usual ${shown(fast)} msg/s`],
        }),
        finding({
          goal: 'P6',
          what: 'Longest stall of the event loop meanwhile',
          against: '–',
          value: slowStalls.longest,
          most: 20,
          unit: 'ms',
          figures: [
            `slow disk: longest ${slowStalls.longest.toFixed(1)} ms, p99 ${slowStalls.p99.toFixed(1)} ms`,
            `usual disk: longest ${usualStalls.longest.toFixed(1)} ms, p99 ${usualStalls.p99.toFixed(1)} ms`,
          ],
        }),
      ]
    } finally {
      await Promise.all([usual.stop(), slow.stop()])
    }
  },
}

interface Stalls {
  longest: number
  p99: number
}

function stallsIn(file: string): Stalls {
  return JSON.parse(readFileSync(file, 'utf8')) as Stalls
}
