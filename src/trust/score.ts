import type { Reputation, Tier } from './model.ts'

/** The counters of an identity. `positive`, `negative` and `disputed` are weights of reports, in thousandths. */
export interface Counters {
  deliveries: number
  bounces: number
  complaints: number
  replies: number
  tokens: number
  positive: number
  negative: number
  disputed: number
}

/** Facts read at the time of the request. */
export interface Circumstances {
  /** Whole days since the identity was created. */
  age_days: number
  /** True if the domain of its address is verified. */
  verified_domain: boolean
}

export const nothing: Counters = {
  deliveries: 0,
  bounces: 0,
  complaints: 0,
  replies: 0,
  tokens: 0,
  positive: 0,
  negative: 0,
  disputed: 0,
}

/** The initial score. */
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

/** The tier of a score from 0 to 1. */
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
  const positive = counters.positive / 1000
  const against = againstOf(counters)
  return [
    {
      name: 'reports_positive',
      value: positive,
      effect: gain(gains.reports_positive, positive),
      explanation: `Good reports of others with a total weight of ${positive}.`,
    },
    {
      name: 'reports_negative',
      value: against,
      effect: rounded(-gain(losses.reports_negative, against)),
      explanation: `Bad reports of others with a total weight of ${against}; a dispute counts half.`,
    },
  ]
}

type Component = Reputation['components'][number]

function earned(counters: Counters, { age_days, verified_domain }: Circumstances): Component[] {
  const { deliveries, replies, tokens } = counters
  const proven = verified_domain ? gain(gains.verified_domain, age_days) : 0
  return [
    {
      name: 'deliveries',
      value: deliveries,
      effect: gain(gains.deliveries, deliveries),
      explanation: `Other servers accepted ${count(deliveries, 'message')} from it.`,
    },
    {
      name: 'replies',
      value: replies,
      effect: gain(gains.replies, replies),
      explanation: `${count(replies, 'conversation')} in which people outside the account replied to it.`,
    },
    {
      name: 'verified_domain',
      value: verified_domain ? 1 : 0,
      effect: proven,
      explanation: verified_domain
        ? 'The domain of its address is verified, which counts for more the older it gets.'
        : 'The domain of its address is not verified.',
    },
    { name: 'age', value: age_days, effect: gain(gains.age, age_days), explanation: `It is ${count(age_days, 'day')} old.` },
    {
      name: 'tokens',
      value: tokens,
      effect: gain(gains.tokens, tokens),
      explanation: `It was authenticated with ${count(tokens, 'token')}.`,
    },
  ]
}

function lost(counters: Counters): Component[] {
  const { deliveries, bounces, complaints } = counters
  const reports = reportEffects(counters)
  return [
    {
      name: 'bounces',
      value: bounces,
      effect: loss(losses.bounces, bounces, deliveries + bounces),
      explanation: `${count(bounces, 'message')} to addresses that do not exist.`,
    },
    {
      name: 'complaints',
      value: complaints,
      effect: loss(losses.complaints, complaints, deliveries),
      explanation: `${count(complaints, 'message')} reported as spam.`,
    },
    ...reports,
  ]
}

/** Approaches the maximum asymptotically: repeating one action never reaches it. */
function gain({ most, half }: { most: number; half: number }, value: number): number {
  return rounded((most * value) / (value + half))
}

function loss({ most, at, spare }: { most: number; at: number; spare: number }, bad: number, all: number): number {
  return rounded(-most * Math.min(1, bad / (all + spare) / at))
}

function againstOf({ negative, disputed }: Pick<Counters, 'negative' | 'disputed'>): number {
  return (negative + disputed / 2) / 1000
}

function rounded(effect: number): number {
  // + 0 turns -0 into 0
  return Math.round(effect * 10_000) / 10_000 + 0
}

function count(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? '' : 's'}`
}
