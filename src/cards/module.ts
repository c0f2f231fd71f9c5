import type { Plan } from '../accounts/plan.ts'
import type { Cascade } from '../identities/cascade.ts'
import type { Identities } from '../identities/identities.ts'
import type { ModuleBasis, Module } from '../module.ts'
import type { PolicyModule } from '../policy/module.ts'
import type { RetentionModule } from '../ops/retention/module.ts'
import { Cards } from './cards.ts'
import { Ledger } from './ledger.ts'
import {
  cardApproved,
  cardCancelled,
  cardCreated,
  cardExpired,
  cardFrozen,
  cardHeld,
  cardLimitsUpdated,
  cardRejected,
  cardRevealed,
  cardUnfrozen,
} from './model.ts'
import { heldCardReveals, Reveals } from './reveals.ts'
import { routes } from './routes.ts'

interface Deps extends ModuleBasis {
  identities: Identities
  cascade: Cascade
  plan: Plan
  keeping: Pick<RetentionModule, 'clears'>
  policy: PolicyModule
}

/** Payment cards, stored encrypted by the client; the box cannot decrypt them. */
export function cardsModule(deps: Deps): Module {
  const ledger = new Ledger(deps)
  const { policyCheck, holds } = deps.policy
  const heldReveals = heldCardReveals(deps.policy, deps.clock)
  const common = { ...deps, ledger, policyCheck, holds, heldReveals }
  const cards = new Cards(common)
  deps.keeping.clears((tx, identityId) => cards.clear(tx, identityId))
  return {
    name: 'cards',
    routes: routes(cards, new Reveals(common), ledger),
    events: [
      cardCreated,
      cardRevealed,
      cardFrozen,
      cardUnfrozen,
      cardCancelled,
      cardLimitsUpdated,
      cardHeld,
      cardApproved,
      cardRejected,
      cardExpired,
    ],
  }
}
