import type { Period } from '../../../cards/model.ts'

/** What a budget is for. */
export const periodWords: Record<Period, string> = {
  one_time: 'in all',
  daily: 'a day',
  weekly: 'a week',
  monthly: 'a month',
  yearly: 'a year',
}
