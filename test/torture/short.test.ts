import { connect } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { absent } from '../support/peer.ts'
import { refuseOtherMachines } from './loopback.ts'
import { runTrial } from './runner.ts'
import { trials } from './trials/all.ts'

// another seed each day, so that runs of all tests add up; a fault is reported with it
const seed = Number(process.env['TORTURE_SEED'] ?? Math.floor(Date.now() / 86_400_000))

test('a trial talks to this machine alone', async () => {
  refuseOtherMachines()
  expect(() => connect(25, '192.0.2.1')).toThrow('not to 192.0.2.1')
  expect(() => connect({ port: 25, host: 'mx.example.com' })).toThrow('not to mx.example.com')
  await expect(fetch('http://192.0.2.1/')).rejects.toThrow('fetch failed')
})

let seconds = 0
afterAll(() => void process.stderr.write(`\nthe short forms of all trials took ${seconds} s\n`))

// they share the machine: one after the other
describe.each(trials.filter((trial) => trial.short > 0))('$name', (trial) => {
  test(`the box passes ${trial.short} ${trial.goal.unit} of the trial`, { timeout: 600_000 }, async () => {
    const missing = trial.missing?.()
    if (missing !== undefined) {
      absent(`trial ${trial.name}`, missing)
      return
    }
    const { findings, seconds: took } = await runTrial(trial, { seed, from: seed % 3000, tries: trial.short, short: true })
    seconds += took
    const repeat = (number: number): string => `npm run torture -- --trial ${trial.name} --seed ${seed} --only ${number}`
    expect(findings.map((finding) => `${finding.fault} (${repeat(finding.case)})`)).toEqual([])
  })
})
