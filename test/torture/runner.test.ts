import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runTrial } from './runner.ts'
import type { CaseResult, Setting, Trial } from './trial.ts'

/** A trial of these cases, and what it did with them. */
function trialOf(run: (number: number) => Promise<CaseResult>): { trial: Trial; told: string[] } {
  const told: string[] = []
  const trial: Trial = {
    name: 'toy',
    about: '',
    goal: { tries: 10, unit: 'tries', faults: '' },
    short: 0,
    hours: 1,
    broken: {},
    async open({ directory }: Setting) {
      told.push(existsSync(directory) ? 'opened' : 'without a directory')
      return {
        run: (number) => run(number),
        close: async () => void told.push(existsSync(directory) ? 'closed' : 'closed too late'),
      }
    },
  }
  return { trial, told }
}

const good = { tries: 1, faults: [] }

function never(): Promise<never> {
  return new Promise(() => undefined)
}

test('a case that throws is a finding, and the trial goes on with another opening of it', async () => {
  const { trial, told } = trialOf(async (number) => {
    if (number === 1) throw new Error('the box does not start')
    return good
  })
  const result = await runTrial(trial, { seed: 1, tries: 3 })
  expect(result).toMatchObject({ cases: 4, tries: 3, findings: [{ case: 1, fault: 'threw: the box does not start' }] })
  expect(told).toEqual(['opened', 'closed', 'opened', 'closed'])
})

test('a trial that cannot be opened, or whose cases throw one after the other, ends after three', async () => {
  const { trial } = trialOf(() => Promise.reject(new Error('no')))
  const result = await runTrial(trial, { seed: 1, from: 5, tries: 3 })
  expect(result.findings).toEqual([5, 6, 7].map((number) => ({ case: number, fault: 'threw: no' })))
  const unopened = { ...trial, open: () => Promise.reject(new Error('shut')) }
  const { findings } = await runTrial(unopened, { seed: 1, tries: 3 })
  expect(findings.map(({ fault }) => fault)).toEqual(['threw: shut', 'threw: shut', 'threw: shut'])
})

test('a trial that cannot be closed has that as a finding', async () => {
  const { trial } = trialOf(async () => good)
  const open: Trial['open'] = async (setting) => ({
    ...(await trial.open(setting)),
    close: () => Promise.reject(new Error('it goes on')),
  })
  const { findings } = await runTrial({ ...trial, open }, { seed: 1, tries: 1 })
  expect(findings).toEqual([{ case: 1, fault: 'threw as it was closed: it goes on' }])
})

test('a case that does not end in time is a finding, with which the trial is closed and ends', async () => {
  const { trial, told } = trialOf((number) => (number < 2 ? Promise.resolve(good) : never()))
  const result = await runTrial(trial, { seed: 1, tries: 5, deadline: 60 })
  const fault = 'has not ended within 0.001 minutes'
  expect(result).toMatchObject({ cases: 3, tries: 2, findings: [{ case: 2, fault }], ended: `case 2 ${fault}` })
  expect(told).toEqual(['opened', 'closed'])
})

test('so is one that cannot be opened or closed in time', async () => {
  const { trial } = trialOf(async () => good)
  const unopened = await runTrial({ ...trial, open: never }, { seed: 1, tries: 5, deadline: 60 })
  expect(unopened.findings).toEqual([{ case: 0, fault: 'has not ended within 0.001 minutes' }])
  const open: Trial['open'] = async (setting) => ({ ...(await trial.open(setting)), close: never })
  const unclosed = await runTrial({ ...trial, open }, { seed: 1, tries: 1, deadline: 60 })
  expect(unclosed).toMatchObject({
    tries: 1,
    findings: [{ case: 1, fault: 'threw as it was closed: has not ended within 0.001 minutes' }],
    ended: 'its closing has not ended within 0.001 minutes',
  })
})

function spawned(path: string): Error {
  return Object.assign(new Error(`spawn ${path} ENOENT`), { code: 'ENOENT', syscall: `spawn ${path}`, path })
}

test('where a program of the machine is missing, nothing is found', async () => {
  const missing = trialOf(() => Promise.reject(new Error('The server does not start', { cause: spawned('no-such-program') })))
  await expect(runTrial(missing.trial, { seed: 1, tries: 1 })).rejects.toThrow('does not start')
  expect(missing.told.at(-1)).toBe('closed')
  // its directory is what is missing
  const { findings } = await runTrial(trialOf(() => Promise.reject(spawned('sh'))).trial, { seed: 1, tries: 1 })
  expect(findings[0]!.fault).toBe('threw: spawn sh ENOENT')
  await expect(
    runTrial(trialOf(() => Promise.reject(spawned(join('/', 'no', 'such')))).trial, { seed: 1, tries: 1 }),
  ).rejects.toThrow('ENOENT')
})

test('the result is at hand after each case', async () => {
  const seen: number[] = []
  let result: { tries: number } | undefined
  const { trial } = trialOf(async () => {
    seen.push(result!.tries)
    return good
  })
  await runTrial(trial, { seed: 1, tries: 3, began: (begun) => (result = begun) })
  expect(seen).toEqual([0, 1, 2])
})
