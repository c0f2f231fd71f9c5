import type { Reputation, Tier } from './model.ts'

/** What is counted of an identity. */
export const counterNames = [
  'deliveries',
  'bounces',
  'complaints',
  'replies',
  'tokens',
  'positive',
  'negative',
  'disputed',
] as const

/** `positive`, `negative` and `disputed` are weights of reports, in thousandths. */
export type Counters = Record<(typeof counterNames)[number], number>

export const nothing = Object.fromEntries(counterNames.map((name) => [name, 0])) as Counters

/** Facts read at the time of the request. */
interface Circumstances {
  /** Whole days since the identity was created. */
  age_days: number
  /** True if the domain of its address is verified. */
  verified_domain: boolean
}

export const start = 0.5

/** The most that each component adds, and the count at which half of it is reached. Together they add 0.5. */
export const gains = {
  replies: { most: 0.15, half: 20 },
  reports_positive: { most: 0.13, half: 20 },
  deliveries: { most: 0.1, half: 200 },
  age: { most: 0.06, half: 90 },
  verified_domain: { most: 0.04, half: 30 },
  tokens: { most: 0.02, half: 50 },
} as const

/** The most that each component subtracts; `at` is the rate at which it does, `spare` the deliveries granted beforehand. */
export const losses = {
  bounces: { most: 0.3, at: 0.1, spare: 50 },
  complaints: { most: 0.5, at: 0.003, spare: 1000 },
  reports_negative: { most: 0.4, half: 20 },
} as const

/** The lowest score of each tier. */
export const tiers: [Tier, number][] = [
  ['platinum', 0.85],
  ['gold', 0.7],
  ['silver', 0.6],
  ['bronze', 0],
]

export function tierOf(score: number): Tier {
  return tiers.find(([, from]) => score >= from)?.[0] ?? 'bronze'
}

/** Score, tier and components: a pure function that gives the same result on every machine, as it uses only the four basic operations. */
export function scoreOf(counters: Counters, circumstances: Circumstances): Pick<Reputation, 'score' | 'tier' | 'components'> {
  const components = [...earned(counters, circumstances), ...lost(counters)]
  const score = summed(components.map(({ effect }) => effect))
  return { score, tier: tierOf(score), components }
}

/** The score of these effects, from 0 to 1, in ten-thousandths. */
export function summed(effects: number[]): number {
  // integers, so that their order makes no difference
  const total = [start, ...effects].reduce((sum, effect) => sum + Math.round(effect * 10_000), 0)
  return Math.min(Math.max(total, 0), 10_000) / 10_000
}

/** The effect of reports alone. */
export function reportEffects(counters: Pick<Counters, 'positive' | 'negative' | 'disputed'>): Component[] {
  const good = counters.positive / 1000
  const bad = (counters.negative + counters.disputed / 2) / 1000
  return [
    component(
      'reports_positive',
      good,
      gain(gains.reports_positive, good),
      `Good reports of others with a total weight of ${good}.`,
    ),
    component(
      'reports_negative',
      bad,
      rounded(-gain(losses.reports_negative, bad)),
      `Bad reports of others with a total weight of ${bad}; a dispute counts half.`,
    ),
  ]
}

type Component = Reputation['components'][number]

function component(name: string, value: number, effect: number, explanation: string): Component {
  return { name, value, effect, explanation }
}

function earned({ deliveries, replies, tokens }: Counters, { age_days: days, verified_domain }: Circumstances): Component[] {
  const proven = verified_domain ? gain(gains.verified_domain, days) : 0
  const accepted = `Other servers accepted ${count(deliveries, 'message')} from it.`
  const replied = `${count(replies, 'conversation')} in which people outside the account replied to it.`
  const verified = verified_domain
    ? 'The domain of its address is verified, which counts for more the older it gets.'
    : 'The domain of its address is not verified.'
  return [
    component('deliveries', deliveries, gain(gains.deliveries, deliveries), accepted),
    component('replies', replies, gain(gains.replies, replies), replied),
    component('verified_domain', verified_domain ? 1 : 0, proven, verified),
    component('age', days, gain(gains.age, days), `It is ${count(days, 'day')} old.`),
    component('tokens', tokens, gain(gains.tokens, tokens), `It was authenticated with ${count(tokens, 'token')}.`),
  ]
}

function lost(counters: Counters): Component[] {
  const { deliveries, bounces, complaints } = counters
  const bounced = loss(losses.bounces, bounces, deliveries + bounces)
  const complained = loss(losses.complaints, complaints, deliveries)
  return [
    component('bounces', bounces, bounced, `${count(bounces, 'message')} to addresses that do not exist.`),
    component('complaints', complaints, complained, `${count(complaints, 'message')} reported as spam.`),
    ...reportEffects(counters),
  ]
}

/** Approaches the maximum asymptotically: repeating one action never reaches it. */
function gain({ most, half }: { most: number; half: number }, value: number): number {
  return rounded((most * value) / (value + half))
}

function loss({ most, at, spare }: { most: number; at: number; spare: number }, bad: number, all: number): number {
  return rounded(-most * Math.min(1, bad / (all + spare) / at))
}

function rounded(effect: number): number {
  // + 0 turns -0 into 0
  return Math.round(effect * 10_000) / 10_000 + 0
}

function count(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? '' : 's'}`
}
