import { invalid } from '../core/fault.ts'
import type { LimitsChange, NewCard, Period } from './model.ts'

/** The given fields of a card's budget. */
export interface BudgetInput {
  budget_cents: number | undefined
  currency: string | undefined
  period: Period | undefined
}

/** The budget of a call in either field naming. Throws Fault when both are given and differ. */
export function budgetOf({ budget_cents, currency, period, budget }: LimitsChange | NewCard): BudgetInput {
  return {
    budget_cents: one('budget.amount', 'budget_cents', budget?.amount, budget_cents),
    currency: one('budget.currency', 'currency', budget?.currency, currency),
    period: one('budget.period', 'period', budget?.period, period),
  }
}

/** The name of a card in either field. Throws Fault when there is none, or two different ones. */
export function nameOf({ card_name, label }: NewCard): string {
  const name = one('label', 'card_name', label, card_name)
  if (name === undefined) throw invalid('card_name', 'card_name (or label) is required.', 'missing')
  return name
}

/** Whether a call resets the amount spent to 0. */
export function resetOf({ reset_spent, reset_spend }: LimitsChange): boolean {
  return one('reset_spend', 'reset_spent', reset_spend, reset_spent) ?? false
}

function one<Value>(param: string, other: string, value: Value | undefined, otherValue: Value | undefined): Value | undefined {
  if (value !== undefined && otherValue !== undefined && value !== otherValue) {
    throw invalid(param, `Send ${param} or ${other}, not two different values.`)
  }
  return value ?? otherValue
}
