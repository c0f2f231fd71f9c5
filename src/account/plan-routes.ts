import { route } from '../http/route.ts'
import type { AnyRoute } from '../http/route.ts'
import { Subscription } from './model.ts'
import type { Plan } from './plan.ts'

export function planRoutes(plan: Plan): AnyRoute[] {
  return [
    route({
      method: 'GET',
      path: '/billing/subscription',
      scope: 'account:read',
      tag: 'Account',
      summary: 'Get the subscription',
      description:
        'The limits of the account, and what it uses of them now. What would pass a limit is refused: 403, code plan_limit_reached. Not for keys that are bound to one identity.',
      reply: Subscription,
      handle: ({ caller }) => plan.subscription(caller),
    }),
  ]
}
