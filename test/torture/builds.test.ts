import { describe, expect, test } from 'vitest'
import { textOf } from './builds.ts'
import { trials } from './trials/all.ts'

// what a broken build replaces is in the source: a change of it is met at once, not in the next run of a trial
describe.each(trials)('$name', (trial) => {
  test.each(Object.entries(trial.broken))('the broken build %s can be made', (_name, build) => {
    expect(textOf(build)).toContain(build.replace)
  })
})
