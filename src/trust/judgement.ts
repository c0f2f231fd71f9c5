import type { Action, Evaluation } from './model.ts'
import { type Counters, reportEffects, summed, tierOf } from './score.ts'

/** The default minimum score of each action, and of none. */
export const asked: Record<Action, number> = { read: 0.3, message: 0.4, delegate: 0.6, payment: 0.7 }
export const askedOtherwise = 0.5

/** How far below the minimum a score may be for a review by a person. */
export const margin = 0.2

/** The weight of a good score that another box claims for its own agent; a bad one counts fully. */
export const believed = 0.4

/** The effect of authenticated mail of an outside sender. */
export const acquainted = { most: 0.15, half: 10 }

/** The input of a decision: the score, and the best decision it allows. */
export interface Finding {
  score: number
  best: 'allow' | 'review' | 'deny'
  reasons: string[]
}

type Reported = Pick<Counters, 'positive' | 'negative' | 'disputed'>

/** The decision on a finding: a pure function. */
export function decided(
  { score, best, reasons }: Finding,
  min: number,
): Pick<Evaluation, 'decision' | 'score' | 'tier' | 'reasons'> {
  const tier = tierOf(score)
  const grade = score >= min ? 'allow' : score >= summedDown(min) ? 'review' : 'deny'
  const decision = worse(grade, best)
  const compared =
    grade === 'allow'
      ? `The score ${score} (${tier}) reaches the required ${min}.`
      : grade === 'review'
        ? `The score ${score} (${tier}) is below the required ${min} by at most ${margin}: a person should review it.`
        : `The score ${score} (${tier}) is below the required ${min} by more than ${margin}.`
  // a refused subject gets no reasons from its score
  return { decision, score, tier, reasons: best === 'deny' ? reasons : [compared, ...reasons] }
}

/** The score of an agent of another box; `claimed` is that box's claim, null without one. */
export function foreignScore(claimed: number | null, reports: Reported): number {
  const beyond = (claimed ?? 0.5) - 0.5
  return summed([beyond > 0 ? beyond * believed : beyond, ...reportEffects(reports).map(({ effect }) => effect)])
}

export function strangerScore(proven: number, reports: Reported): number {
  const known = (acquainted.most * proven) / (proven + acquainted.half)
  return summed([known, ...reportEffects(reports).map(({ effect }) => effect)])
}

/** Sentences about reports, without numbers, as they come from other accounts. */
export function reportReasons(reports: Reported): string[] {
  const [good, bad] = reportEffects(reports).map(({ effect }) => effect)
  return [
    ...(good! > 0 ? ['Accounts of this box made good reports about it.'] : []),
    ...(bad! < 0 ? ['Accounts of this box made bad reports about it.'] : []),
  ]
}

function summedDown(min: number): number {
  return Math.round((min - margin) * 10_000) / 10_000
}

function worse(one: Finding['best'], other: Finding['best']): Finding['best'] {
  const order = ['deny', 'review', 'allow'] as const
  return order[Math.min(order.indexOf(one), order.indexOf(other))]!
}
