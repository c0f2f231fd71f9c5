import { iso } from '../../core/clock.ts'
import { notFound } from '../../core/fault.ts'
import type { Caller } from '../../core/scopes.ts'
import { Deleted, Page, Paging } from '../../core/shapes.ts'
import { type AnyRoute, routeOf } from '../../http/route.ts'
import type { Accounts } from '../accounts.ts'
import { requireSession } from '../granting.ts'
import { Account, Session, SessionEntry, SessionsEnded, SetupInput, SetupLink, SignInInput } from '../model.ts'
import type { SessionRow, Sessions } from './sessions.ts'
import type { AccountSetup } from './setup.ts'
import type { SignIn } from './sign-in.ts'

interface Deps {
  accounts: Accounts
  sessions: Sessions
  signIn: SignIn
}

const route = routeOf('Sessions')

export function sessionRoutes({ accounts, sessions, signIn }: Deps): AnyRoute[] {
  const toSession = async (row: SessionRow): Promise<Session> => {
    const { id, name, email, totp_enabled } = await accounts.of(row.account_id, row.person_id)
    // a session requires an address, and an address is never removed
    return {
      id: row.id,
      account: { id, name, email: email ?? '' },
      person: { id: row.person_id, role: row.role },
      totp_enabled,
      created_at: row.created_at,
      expires_at: iso(sessions.endOf(row)),
    }
  }
  return [
    route('POST', '/session', {
      scope: 'public',
      rate: 'sign-in',
      errors: {
        401: ['invalid_credentials', 'totp_required', 'invalid_totp'],
        403: ['csrf'],
        429: ['too_many_attempts', 'busy'],
      },
      summary: 'Sign in',
      description:
        'Sets the cookie of a new session. Requires the header Origin, like every change by cookie (forbidden, code csrf). A wrong address or ' +
        'password is 401, code invalid_credentials; totp_required says that the account has a second factor, invalid_totp that its code was wrong.',
      body: SignInInput,
      reply: Session,
      example: { body: { email: 'ada@example.com', password: 'a long and quiet evening' } },
      cookie: ({ token, created_at }: SessionRow & { token: string }) => ({
        value: token,
        seconds: Math.floor((sessions.endOf({ created_at }) - Date.parse(created_at)) / 1000),
      }),
      handle: async ({ caller, body }) => {
        const row = await signIn.enter(caller, body)
        return { ...(await toSession(row)), token: row.token }
      },
    }),
    route('GET', '/session', {
      scope: 'account:read',
      errors: { 403: ['session_required'], 404: ['not_found'] },
      summary: 'Get the signed-in account',
      description: 'Requires a session: a key is forbidden, code session_required.',
      reply: Session,
      handle: async ({ caller }) => {
        const row = await sessions.row(sessionOf(caller))
        if (!row) throw notFound('session')
        return toSession(row)
      },
    }),
    route('DELETE', '/session', {
      scope: 'account:write',
      own: true,
      errors: { 403: ['session_required'] },
      audit: 'session.ended',
      summary: 'Sign out',
      description: 'Ends the session and its WebSockets, and deletes the cookie.',
      reply: Deleted,
      cookie: () => ({ value: '', seconds: 0 }),
      handle: ({ caller }) => sessions.signOut(sessionOf(caller)),
    }),
    route('GET', '/account/sessions', {
      scope: 'account:read',
      sdk: 'account.sessions',
      errors: { 404: ['not_found'] },
      summary: 'List sessions',
      description: 'The active sessions of the signed-in person, newest first; for a key, those of all people of the account.',
      query: Paging,
      reply: Page(SessionEntry),
      handle: ({ caller, query }) => sessions.list(whole(caller), query),
    }),
    route('DELETE', '/account/sessions', {
      scope: 'account:write',
      own: true,
      receipt: ['count'],
      sdk: 'account.endSessions',
      errors: { 404: ['not_found'] },
      audit: 'session.ended',
      summary: 'Sign out everywhere',
      description:
        'Ends every session of the signed-in person except the one of this call; for a key, those of all people of the account.',
      reply: SessionsEnded,
      handle: ({ caller }) => sessions.signOutElsewhere(whole(caller)),
    }),
  ]
}

/** Setting the first password of an account without a key. */
export function setupRoutes(setup: AccountSetup): AnyRoute[] {
  return [
    routeOf('Account')('POST', '/setup', {
      scope: 'public',
      rate: 'sign-in',
      errors: { 403: ['csrf', 'setup_link_invalid'], 409: ['email_taken'], 429: ['busy'] },
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
      errors: { 409: ['password_set'] },
      audit: 'setup_link.created',
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

function sessionOf(caller: Caller): string {
  return requireSession(caller, 'This call requires a session, not a key.')
}

/** Requires a key that is not bound to one identity. */
function whole(caller: Caller): Caller {
  if (caller.identity_id !== null) throw notFound('account')
  return caller
}
