import { figure } from './measure.ts'

/** What a bench is given. */
export interface Setting {
  /** A directory of its own, removed afterwards. */
  directory: string
  /** Counted rounds after the warm-up. */
  rounds: number
  /** Part of the full amount of work, at most 1. */
  scale: number
  /** Messages in the full mailbox of P12 and P18. */
  messages: number
}

/** One measured goal of the table. */
export interface Finding {
  goal: string
  what: string
  against: string
  /** As the goal is written: `≥ 4 ×`; `–` where there is none. */
  wanted: string
  /** As it was measured: `2.10 ×`. */
  reached: string
  /** Null without a goal. */
  met: boolean | null
  /** How far from the goal, in words. */
  by: string
  /** The figures behind the ratio, one a line. */
  figures: string[]
}

export interface Bench {
  name: string
  /** The goals it measures. */
  goals: string[]
  run(setting: Setting): Promise<Finding[]>
}

interface Measured {
  goal: string
  what: string
  against: string
  value: number
  /** The bound, and which side of it is good; without one the value is only told. */
  least?: number
  most?: number
  unit?: string
  figures: string[]
}

/** Judges a value by its bound. */
export function finding({ value, least, most, unit = '×', figures, ...named }: Measured): Finding {
  const bound = least ?? most
  const reached = `${figure(value)} ${unit}`
  if (bound === undefined) return { ...named, wanted: '–', reached, met: null, by: 'no goal', figures }
  const met = least === undefined ? value <= bound : value >= bound
  // how much better (or worse) than the bound, whichever way better lies
  const distance = least === undefined ? bound / value : value / bound
  const by = met ? `better by a factor of ${figure(distance)}` : `missed by a factor of ${figure(1 / distance)}`
  return {
    ...named,
    wanted: `${least === undefined ? '≤' : '≥'} ${bound} ${unit}`,
    reached,
    met,
    by,
    figures,
  }
}
