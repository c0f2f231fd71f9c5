import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { type Entry, explanationOf, pageOf, readEntries, readMended } from './report.ts'
import type { Trial } from './trial.ts'

const [entries, mended] = [readEntries(), readMended()]

test('the runs that are noted have each a time of their own', () => {
  expect(new Set(entries.map(({ at }) => at)).size).toBe(entries.length)
})

// a fault that nobody has explained is one of the box
describe.each(entries.filter(({ broken, findings }) => broken === null && findings.length > 0))(
  'what $trial found with seed $seed, at $at',
  (entry) => {
    test.each(entry.findings)('case $case is explained in mended.json: $fault', (finding) => {
      expect(explanationOf(finding, entry, mended)).toBeDefined()
    })
  },
)

test('an explanation is of a run that is noted, and of what it found', () => {
  const explained = mended.flatMap(({ trial, found = [] }) => found.map((one) => ({ trial, ...one })))
  const idle = explained.filter(({ trial, at, case: number, says = '' }) => {
    const entry = entries.find((one) => one.at === at && one.trial === trial)
    const isOf = entry?.findings.some((one) => (number ?? one.case) === one.case && one.fault.includes(says))
    // a broken build that was not found has no finding
    return !isOf && (entry?.broken ?? null) === null
  })
  expect(idle).toEqual([])
})

test('the page counts as done what was tried on a commit, with no fault but those that are explained and mended', () => {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: import.meta.dirname, encoding: 'utf8' }).trim()
  const trial: Trial = {
    name: 'toy',
    about: '',
    goal: { tries: 10, unit: 'tries', faults: 'none' },
    short: 0,
    hours: 1,
    broken: {
      seen: { what: 'what it breaks', file: '', find: '', replace: '' },
      unseen: { what: 'what it hides', file: '', find: '', replace: '' },
    },
    open: () => Promise.reject(new Error('it is not run')),
  }
  const run = (tries: number, given: Partial<Entry> = {}): Entry => ({
    trial: 'toy',
    seed: tries,
    from: 0,
    cases: 1,
    tries,
    seconds: 1,
    broken: null,
    findings: [],
    at: `2026-01-01T00:00:00.${String(tries).padStart(3, '0')}Z`,
    commit,
    machine: [],
    ...given,
  })
  const explained = run(200, { findings: [{ case: 0, fault: 'it is lost' }] })
  const open = run(20, { findings: [{ case: 0, fault: 'it hangs' }] })
  const runs = [
    run(1),
    run(2, { commit: `${commit}-dirty` }),
    run(10, { findings: [{ case: 0, fault: 'who knows' }] }),
    open,
    explained,
    run(400, { broken: 'seen', commit: `${commit}-dirty`, findings: [{ case: 3, fault: 'it is seen' }] }),
    run(401, { broken: 'unseen' }),
    ...Array.from({ length: 12 }, (_, index) => run(300 + index, { tries: 0 })),
  ]
  const page = pageOf([trial], runs, [
    { trial: 'toy', fault: 'It was lost', test: 'a test', found: [{ at: explained.at, says: 'lost' }] },
    { trial: 'toy', fault: 'It hangs', found: [{ at: open.at, case: 0 }] },
    { trial: 'toy', kind: 'oracle', fault: 'It was right' },
  ])
  expect(page).toContain(`| 10 tries: none | 201 | ${commit} | 1 | 233 | 2 box, 1 oracle, 1 unexplained | 0 |`)
  // those with a fault stay, however many came after them
  for (const row of ['| 10 | 10 | 1 s | 1: unexplained |', '| 20 | 20 | 1 s | 1: box |', '| 200 | 200 | 1 s | 1: box |'])
    expect(page).toContain(row)
  expect(page).toContain('- box, 2026-01-01 00:00: It hangs (not mended)')
  expect(page).toContain(`what it breaks. Found in case 3 of seed 400 on ${commit}-dirty: it is seen.`)
  expect(page).toContain(`what it hides. Not found in 401 tries with seed 401 on ${commit}.`)
})
