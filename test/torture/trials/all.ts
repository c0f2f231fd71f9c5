import type { Trial } from '../trial.ts'
import { budgets } from './budgets.ts'
import { clocks } from './clocks.ts'
import { crowds } from './crowds.ts'
import { failingDisks } from './failing-disks.ts'
import { http } from './http.ts'
import { kills } from './kills.ts'
import { mail } from './mail.ts'
import { powerCuts } from './power-cuts.ts'
import { rights } from './rights.ts'
import { smtp } from './smtp.ts'
import { soak } from './soak.ts'

/** In the order in which they run. */
export const trials: Trial[] = [kills, powerCuts, failingDisks, mail, smtp, http, rights, budgets, clocks, crowds, soak]
