import type { Trial } from '../trial.ts'
import { budgets } from './budgets.ts'
import { clocks } from './clocks.ts'
import { failingDisks } from './failing-disks.ts'
import { kills } from './kills.ts'
import { mail } from './mail.ts'
import { peers } from './peers.ts'
import { powerCuts } from './power-cuts.ts'
import { smtp } from './smtp.ts'
import { verdicts } from './verdicts.ts'

/** In the order in which they run. */
export const trials: Trial[] = [kills, powerCuts, failingDisks, mail, verdicts, smtp, peers, budgets, clocks]
