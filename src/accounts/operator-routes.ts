import { type Cursors, pageOf } from '../store/page.ts'
import { Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Accounts } from './accounts.ts'
import { Account, AccountInput, PasswordReset } from './model.ts'

const route = routeOf('Operation')

/** Account management for the operator. */
export function operatorRoutes(accounts: Accounts, cursors: Cursors): AnyRoute[] {
  return [
    route('GET', '/accounts', {
      scope: 'account:read',
      operator: true,
      sdk: 'accounts.list',
      summary: 'List the accounts of the box',
      description: 'All of them, oldest first.',
      query: Paging,
      reply: Page(Account),
      handle: async ({ query }) => pageOf(cursors, 'accounts', query, await accounts.list()),
    }),
    route('POST', '/accounts', {
      scope: 'account:write',
      // its owner is a person, whom no policy holds
      alsoScope: ['holds:decide'],
      operator: true,
      sdk: 'accounts.create',
      errors: { 409: ['conflict', 'email_taken'], 429: ['busy'] },
      audit: 'account.created',
      summary: 'Add an account',
      description:
        'Its user signs in with this address and password. A repetition with the same Idempotency-Key is recognized by all fields but the password.',
      body: AccountInput,
      reply: Account,
      status: 201,
      uncompared: 'password',
      example: { body: { name: 'Grace', email: 'grace@example.com', password: 'a long and quiet evening' } },
      handle: ({ body }) => accounts.add(body),
    }),
    route('POST', '/accounts/:id/password', {
      scope: 'account:write',
      operator: true,
      local: true,
      errors: { 409: ['email_taken'], 429: ['busy'] },
      audit: { action: 'password.reset', target: ({ id }: { id: string }) => id },
      summary: 'Set the password of a person',
      description:
        'Resets a lost password, of the first owner of the account, or of the person whose id is in place of that of the account: ends their sessions, and removes the second factor if requested. Only on the machine of the box, through its local ' +
        'socket (pillarbox account password). Takes no Idempotency-Key.',
      body: PasswordReset,
      reply: Account,
      idempotent: false,
      example: { body: { password: 'a longer and quieter evening', remove_second_factor: true } },
      handle: ({ params, body }) => {
        const { password, email, remove_second_factor: removeSecondFactor } = body
        return accounts.setPassword({ who: params.id, password, removeSecondFactor, ...(email === undefined ? {} : { email }) })
      },
    }),
  ]
}
