import { spawnSync } from 'node:child_process'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { collect } from '../../src/core/memory.ts'
import { Metrics } from '../../src/core/metrics.ts'

/** The path of a file of `src/core`, as a literal. */
const source = (file: string): string => JSON.stringify(fileURLToPath(new URL(`../../src/core/${file}`, import.meta.url)))

/** The metrics of a box, read once and then gone: something that only they refer to. */
async function read(): Promise<WeakRef<object>> {
  const metrics = new Metrics()
  const part = { size: 1 }
  metrics.gauge('parts', 'Parts', (gauge) => gauge.set(part.size))
  metrics.collectProcess()
  expect(await metrics.text()).toMatch(/^parts 1$[^]*^nodejs_version_info/m)
  return new WeakRef(part)
}

test('a box that is gone is not kept in memory by what watches the process', async () => {
  const gone = await read()
  await nextTurn()
  collect()
  expect(gone.deref()).toBeUndefined()
})

test('the metrics of the process are in those of every box in it, once', async () => {
  for (const metrics of [new Metrics(), new Metrics()]) {
    metrics.collectProcess()
    expect((await metrics.text()).match(/^# TYPE nodejs_version_info /gm)).toHaveLength(1)
    expect(metrics.declared.map(({ name }) => name)).toContain('nodejs_version_info')
  }
})

test('metrics that nobody has read yet do not wake an idle process', () => {
  const program = `
    import { setTimeout as pause } from 'node:timers/promises'
    import { Metrics } from ${source('metrics.ts')}
    import { createLog } from ${source('log.ts')}
    new Metrics().collectProcess()
    createLog('info').info('started')
    await pause(500)
    const before = process.resourceUsage().voluntaryContextSwitches
    await pause(1000)
    process.stderr.write(String(process.resourceUsage().voluntaryContextSwitches - before))
    process.exit()`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  expect(stdout).toContain('started')
  expect(Number(stderr)).toBeLessThan(30)
})
