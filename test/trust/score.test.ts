import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Counters, gains, losses, nothing, scoreOf, start, tierOf, tiers } from '../../src/trust/score.ts'

const fresh = { age_days: 0, verified_domain: false }
const guide = readFileSync(new URL('../../docs/agents.md', import.meta.url), 'utf8')
const whole = fc.nat({ max: 1_000_000 })
const anything = fc.record({
  deliveries: whole,
  bounces: whole,
  complaints: whole,
  replies: whole,
  tokens: whole,
  positive: whole,
  negative: whole,
  disputed: whole,
})
const standing = fc.record({ age_days: fc.nat({ max: 40_000 }), verified_domain: fc.boolean() })

const scored = (counters: Partial<Counters>, more: Partial<typeof fresh> = {}): number =>
  scoreOf({ ...nothing, ...counters }, { ...fresh, ...more }).score

describe('a score', () => {
  test('begins at exactly 0.5, whatever the domain', () => {
    expect(scoreOf(nothing, fresh)).toMatchObject({ score: 0.5, tier: 'bronze' })
    expect(scored({}, { verified_domain: true })).toBe(0.5)
  })

  test('lies between 0 and 1, and is 0.5 and the effects that are shown', () => {
    fc.assert(
      fc.property(anything, standing, (counters, more) => {
        const { score, tier, components } = scoreOf(counters, more)
        const sum = components.reduce((total, { effect }) => total + effect, start)
        expect(score).toBeGreaterThanOrEqual(0)
        expect(score).toBeLessThanOrEqual(1)
        expect(score).toBeCloseTo(Math.min(Math.max(sum, 0), 1), 9)
        expect(tier).toBe(tierOf(score))
        expect(components.every(({ effect }) => !Object.is(effect, -0))).toBe(true)
      }),
    )
  })

  test('is never higher for something bad, nor lower for something good', () => {
    const good = ['deliveries', 'replies', 'tokens', 'positive'] as const
    const bad = ['bounces', 'complaints', 'negative', 'disputed'] as const
    fc.assert(
      fc.property(anything, standing, fc.nat({ max: 5000 }), (counters, more, some) => {
        const { score } = scoreOf(counters, more)
        for (const name of good) {
          expect(scoreOf({ ...counters, [name]: counters[name] + some }, more).score).toBeGreaterThanOrEqual(score)
        }
        for (const name of bad) {
          expect(scoreOf({ ...counters, [name]: counters[name] + some }, more).score).toBeLessThanOrEqual(score)
        }
      }),
    )
  })

  test('is not won by doing one thing without end', () => {
    const endless = 1_000_000_000
    for (const name of ['deliveries', 'replies', 'tokens', 'positive'] as const) {
      expect([name, tierOf(scored({ [name]: endless }))]).not.toEqual([name, expect.stringMatching(/gold|platinum/)])
    }
    expect(tierOf(scored({ deliveries: endless, tokens: endless }, { age_days: 10_000, verified_domain: true }))).toBe('gold')
  })

  test('falls at once when people complain or nobody is there', () => {
    expect(scored({ deliveries: 10, complaints: 3 })).toBeLessThan(0.1)
    expect(scored({ deliveries: 10, bounces: 10 })).toBeLessThan(0.3)
    // a few among many are everybody's lot
    expect(scored({ deliveries: 10_000, complaints: 1, bounces: 20 })).toBeGreaterThan(0.55)
  })

  test('moves by a bounded amount for all that one account reports: twice its first', () => {
    const all = Array.from({ length: 30 }, (_, index) => Math.round(5000 / 2 ** index)).reduce((sum, one) => sum + one, 0)
    expect(all).toBeLessThanOrEqual(10_010)
    expect(scored({ negative: all })).toBeGreaterThan(0.36)
    expect(scored({ positive: all })).toBeLessThan(0.55)
  })
})

describe('docs/agents.md', () => {
  test('has the constants', () => {
    for (const [name, { most, half }] of Object.entries(gains)) expect(row(name)).toEqual([`+${most}`, `${half}`])
    expect(row('bounces')).toEqual([`−${losses.bounces.most}`, `${losses.bounces.at}`, `${losses.bounces.spare}`])
    expect(row('complaints')).toEqual([`−${losses.complaints.most}`, `${losses.complaints.at}`, `${losses.complaints.spare}`])
    expect(row('reports_negative')).toEqual([`−${losses.reports_negative.most}`, `${losses.reports_negative.half}`])
    for (const [tier, from] of tiers) expect(guide).toContain(`| ${tier} | ${from} |`)
  })

  test('has an example that comes out', () => {
    const example = JSON.parse(/```json example\n([^]*?)```/.exec(guide)![1]!)
    const { score, tier, components } = scoreOf({ ...nothing, ...example.counters }, example.when)
    const effects = Object.fromEntries(components.map(({ name, effect }) => [name, effect]))
    expect({ score, tier, effects }).toEqual(example.comes_out)
  })
})

/** The figures of a component in its table. */
function row(name: string): string[] {
  const line = guide.split('\n').find((one) => one.startsWith(`| ${name} |`))
  if (line === undefined) throw new Error(`${name} is in no table`)
  return line
    .split('|')
    .slice(3, -1)
    .map((cell) => cell.trim())
    .filter((cell) => /^[+−]?[\d.]+$/.test(cell))
}
