import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/core/clock.ts'
import { Schedule } from '../../src/core/cron.ts'
import { createLog } from '../../src/core/log.ts'
import { Metrics } from '../../src/core/metrics.ts'

function schedule(): { schedule: Schedule; metrics: Metrics; lines: () => Record<string, unknown>[] } {
  const written: string[] = []
  const metrics = new Metrics()
  const made = new Schedule(createLog('debug', { write: (line) => void written.push(line) }), systemClock, metrics)
  onTestFinished(() => made.stop())
  return { schedule: made, metrics, lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>) }
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await sleep(10)
}

it('runs a job again although it failed, in whichever way, and logs the failure with its name', async () => {
  const { schedule: jobs, metrics, lines } = schedule()
  let runs = 0
  jobs.add({
    name: 'sweep',
    schedule: '* * * * * *',
    run: () => {
      runs += 1
      if (runs === 1) throw new Error('at once')
      return Promise.reject(new Error('later'))
    },
  })
  await until(() => runs >= 2)
  expect(runs).toBeGreaterThanOrEqual(2)
  await jobs.stop()
  const failures = lines().filter((line) => line['level'] === 'error')
  expect(failures.slice(0, 2)).toMatchObject([
    { job: 'sweep', err: { message: 'at once' } },
    { job: 'sweep', err: { message: 'later' } },
  ])
  expect(await metrics.text()).toContain(`pillarbox_schedule_runs_total{task="sweep",result="failed"} ${failures.length}\n`)
})

it('does not run a job twice at once, and stops when the run in hand is done', async () => {
  const { schedule: jobs, lines } = schedule()
  let runs = 0
  let done = 0
  let finish!: () => void
  const work = new Promise<void>((resolve) => (finish = resolve))
  jobs.add({
    name: 'slow',
    schedule: '* * * * * *',
    run: async () => {
      runs += 1
      await work
      done += 1
    },
  })
  await until(() => lines().length > 0)
  expect(runs).toBe(1)
  const stopping = jobs.stop().then(() => done)
  await sleep(20)
  expect(done).toBe(0)
  finish()
  expect(await stopping).toBe(1)
  await sleep(1200)
  expect(runs).toBe(1)
})

it('refuses a schedule that is none', () => {
  expect(() => schedule().schedule.add({ name: 'odd', schedule: 'now and then', run: async () => {} })).toThrow(
    'expected 5 or 6 fields',
  )
})

it('runs a job once after the clock has jumped, and goes on by the new time of day', async () => {
  vi.useFakeTimers({ now: Date.parse('2026-11-20T10:00:00.500Z') })
  onTestFinished(() => void vi.useRealTimers())
  const { schedule: jobs, lines } = schedule()
  const runs: string[] = []
  jobs.add({ name: 'seconds', schedule: '* * * * * *', run: async () => void runs.push(new Date().toISOString()) })
  // each missed second would be a step of the main thread
  vi.setSystemTime(Date.parse('2036-11-20T10:00:00.500Z'))
  await vi.advanceTimersByTimeAsync(1500)
  expect(runs).toEqual(['2036-11-20T10:00:01.000Z', '2036-11-20T10:00:02.000Z'])
  vi.setSystemTime(Date.parse('2026-11-20T10:00:00.500Z'))
  await vi.advanceTimersByTimeAsync(1500)
  expect(runs.slice(2)).toEqual(['2026-11-20T10:00:02.000Z'])
  expect(lines()).toEqual([])
})
