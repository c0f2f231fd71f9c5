import type { Trial } from '../trial.ts'
import { boxes } from './boxes.ts'
import { budgets } from './budgets.ts'
import { clocks } from './clocks.ts'
import { crowds } from './crowds.ts'
import { failingDisks } from './failing-disks.ts'
import { http } from './http.ts'
import { kills } from './kills.ts'
import { mail } from './mail.ts'
import { peers } from './peers.ts'
import { powerCuts } from './power-cuts.ts'
import { rights } from './rights.ts'
import { schemathesis } from './schemathesis.ts'
import { smtp } from './smtp.ts'
import { soak } from './soak.ts'
import { upgrades } from './upgrades.ts'
import { verdicts } from './verdicts.ts'

/** In the order in which they run. */
export const trials: Trial[] = [
  kills,
  boxes,
  powerCuts,
  failingDisks,
  mail,
  verdicts,
  smtp,
  http,
  schemathesis,
  rights,
  upgrades,
  peers,
  budgets,
  clocks,
  crowds,
  soak,
]
