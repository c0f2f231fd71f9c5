import type { Plan } from '../accounts/plan.ts'
import type { Caller } from '../core/scopes.ts'
import type { Cascade } from '../identities/cascade.ts'
import type { Identities } from '../identities/identities.ts'
import type { ModuleBasis, Module } from '../module.ts'
import { Entries } from './entries.ts'
import { totpCreated, totpDeleted, totpRead } from './model.ts'
import { CodeReader } from './reading.ts'
import { routes } from './routes.ts'
import { sealedSecrets, Secrets } from './secrets.ts'

interface Deps extends ModuleBasis {
  identities: Identities
  cascade: Cascade
  plan: Plan
  admitted: (caller: Caller) => Promise<boolean>
}

export function totpModule(deps: Deps): Module {
  const secrets = new Secrets(deps.seal)
  const entries = new Entries({ ...deps, secrets })
  return {
    name: 'totp',
    routes: routes(entries, new CodeReader({ ...deps, entries, secrets })),
    events: [totpCreated, totpDeleted, totpRead],
    sealed: [sealedSecrets],
  }
}
