import { Plan } from '../../src/accounts/plan.ts'
import type { Clock } from '../../src/core/clock.ts'
import type { Database } from '../../src/store/database.ts'

/** The plan of a box without limits. */
export function limitless(database: Database, clock: Clock): Plan {
  return new Plan({ database, clock, limits: {}, limitsOf: () => undefined })
}
