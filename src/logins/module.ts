import type { Plan } from '../accounts/plan.ts'
import type { Cascade } from '../identities/cascade.ts'
import type { Identities } from '../identities/identities.ts'
import type { Module, ModuleBasis } from '../module.ts'
import type { PolicyModule } from '../policy/module.ts'
import { Logins } from './logins.ts'
import {
  loginApproved,
  loginCreated,
  loginDeleted,
  loginExpired,
  loginHeld,
  loginRejected,
  loginRevealed,
  loginUpdated,
} from './model.ts'
import { heldLoginReveals, Reveals } from './reveals.ts'
import { routes } from './routes.ts'
import { sealedSecrets, Secrets } from './secrets.ts'

interface Deps extends ModuleBasis {
  identities: Identities
  cascade: Cascade
  plan: Plan
  policy: PolicyModule
}

/** User names, passwords, API keys and notes for places elsewhere, sealed and read one at a time. */
export function loginsModule(deps: Deps): Module {
  const secrets = new Secrets(deps.seal)
  const { policyCheck, holds } = deps.policy
  const heldReveals = heldLoginReveals(deps.policy, deps.clock)
  const common = { ...deps, secrets, policyCheck, holds, heldReveals }
  return {
    name: 'logins',
    routes: routes(new Logins(common), new Reveals(common)),
    events: [loginCreated, loginUpdated, loginDeleted, loginRevealed, loginHeld, loginApproved, loginRejected, loginExpired],
    sealed: [sealedSecrets],
  }
}
