import type { Trial } from '../trial.ts'
import { kills } from './kills.ts'
import { powerCuts } from './power-cuts.ts'

/** In the order in which they run. */
export const trials: Trial[] = [kills, powerCuts]
