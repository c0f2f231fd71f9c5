import type { Config } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import type { Part } from '../part.ts'
import { keyCount } from './key-count.ts'
import type { Keys } from './keys.ts'
import type { Plan } from './plan.ts'
import { planRoutes } from './plan-routes.ts'
import { routes } from './routes.ts'

export function accountPart({ keys, plan, clock }: { keys: Keys; plan: Plan; clock: Clock }): Part {
  plan.counts('api_keys', keyCount(clock))
  return {
    name: 'account',
    routes: [...routes(keys), ...planRoutes(plan)],
    jobs: [{ name: 'note-key-use', schedule: '*/20 * * * * *', run: () => keys.noteUse() }],
    reload: ({ http, limits }: Config) => {
      keys.reload(http.rate_limit)
      plan.reload(limits)
    },
    stop: () => keys.noteUse(),
  }
}
