import type { Plan } from '../account/plan.ts'
import type { Clock } from '../core/clock.ts'
import type { Cursors } from '../core/cursor.ts'
import type { EventLog } from '../events/log.ts'
import type { Identities } from '../identities/identities.ts'
import type { Part } from '../part.ts'
import type { RetentionPart } from '../retention/part.ts'
import type { Database } from '../store/database.ts'
import { Cards } from './cards.ts'
import { Ledger } from './ledger.ts'
import { cardCancelled, cardCreated, cardFrozen, cardLimitsUpdated, cardRevealed, cardUnfrozen } from './model.ts'
import { Reveals } from './reveals.ts'
import { routes } from './routes.ts'

interface Needs {
  database: Database
  events: EventLog
  clock: Clock
  cursors: Cursors
  identities: Identities
  plan: Plan
  keeping: Pick<RetentionPart, 'clears'>
}

/** Payment cards that the box keeps without being able to read them. */
export function cardsPart(needs: Needs): Part {
  const ledger = new Ledger(needs)
  const common = { ...needs, ledger }
  const cards = new Cards(common)
  needs.keeping.clears((tx, identityId) => cards.clear(tx, identityId))
  return {
    name: 'cards',
    routes: routes(cards, new Reveals(common), ledger),
    events: [cardCreated, cardRevealed, cardFrozen, cardUnfrozen, cardCancelled, cardLimitsUpdated],
  }
}
