import { type AnyRoute, routeOf } from '../../http/route.ts'
import { Account, SetupLink, SetupInput } from '../model.ts'
import type { AccountSetup } from './setup.ts'

const route = routeOf('Account')

/** Setting the first password of an account without a key. */
export function setupRoutes(setup: AccountSetup): AnyRoute[] {
  return [
    route('POST', '/setup', {
      scope: 'public',
      rate: 'sign-in',
      summary: 'Set the first password',
      description:
        'Requires the token of a one-time link, which the first start prints and pillarbox account setup-link creates. Requires the header Origin, as ' +
        'signing in does. A link that was used or replaced, or is older than a day, is forbidden, code setup_link_invalid.',
      body: SetupInput,
      reply: Account,
      example: { body: { token: 'what-follows-the-link', email: 'ada@example.com', password: 'a long and quiet evening' } },
      handle: ({ caller, body }) => setup.finish(body, caller),
    }),
    routeOf('Operation')('POST', '/accounts/:id/setup-link', {
      scope: 'account:write',
      operator: true,
      local: true,
      receipt: 'all',
      summary: 'Create a link to set the first password',
      description:
        'It can be used once, within 24 hours, and replaces any earlier link. If the account has a password: conflict, code password_set. Only on the ' +
        'machine of the box, through its local socket (pillarbox account setup-link).',
      reply: SetupLink,
      secret: true,
      handle: ({ params }) => setup.invite(params.id),
    }),
  ]
}
