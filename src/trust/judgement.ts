import type { Action, Evaluation } from './model.ts'
import { type Counters, reportEffects, summed, tierOf } from './score.ts'

/** What each action asks for unless the caller says otherwise, and what is asked for without one. */
export const asked: Record<Action, number> = { read: 0.3, message: 0.4, delegate: 0.6, payment: 0.7 }
export const askedOtherwise = 0.5

/** How far below a score may lie for somebody to look at it. */
export const margin = 0.2

/** How much of a good word that another box says of its own agent counts; of a bad one all does. */
export const believed = 0.4

/** What mail of a stranger adds that their domain vouched for. */
export const acquainted = { most: 0.15, half: 10 }

/** Before it is decided: the score, and the most that can come of it. */
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
      ? `The score ${score} (${tier}) reaches the ${min} that is asked for.`
      : grade === 'review'
        ? `The score ${score} (${tier}) is less than the ${min} that is asked for, by no more than ${margin}: somebody should look at it.`
        : `The score ${score} (${tier}) is less than the ${min} that is asked for, by more than ${margin}.`
  // of who is refused anyway the score says nothing
  return { decision, score, tier, reasons: best === 'deny' ? reasons : [compared, ...reasons] }
}

/** The score of an agent of another box; `claimed` is what that box says of it, null when it says nothing. */
export function foreignScore(claimed: number | null, reports: Reported): number {
  const beyond = (claimed ?? 0.5) - 0.5
  return summed([beyond > 0 ? beyond * believed : beyond, ...reportEffects(reports).map(({ effect }) => effect)])
}

/** The score of somebody who writes from elsewhere. */
export function strangerScore(proven: number, reports: Reported): number {
  const known = (acquainted.most * proven) / (proven + acquainted.half)
  return summed([known, ...reportEffects(reports).map(({ effect }) => effect)])
}

/** Sentences about reports, without numbers: they are other accounts' doing. */
export function reportReasons(reports: Reported): string[] {
  const [good, bad] = reportEffects(reports).map(({ effect }) => effect)
  return [
    ...(good! > 0 ? ['Accounts of this box reported good of it.'] : []),
    ...(bad! < 0 ? ['Accounts of this box reported bad of it.'] : []),
  ]
}

function summedDown(min: number): number {
  return Math.round((min - margin) * 10_000) / 10_000
}

function worse(one: Finding['best'], other: Finding['best']): Finding['best'] {
  const order = ['deny', 'review', 'allow'] as const
  return order[Math.min(order.indexOf(one), order.indexOf(other))]!
}
