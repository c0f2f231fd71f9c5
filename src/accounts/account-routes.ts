import { Deleted } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Accounts } from './accounts.ts'
import { Account, FactorCode, FactorProof, FactorInput, PasswordInput, SecondFactorSetup } from './model.ts'
import type { LoginChanges } from './sign-in/login-changes.ts'
import type { Stops } from './stops.ts'

const route = routeOf('Account')

export function accountRoutes(accounts: Accounts, changes: LoginChanges, stops: Stops): AnyRoute[] {
  return [
    route('GET', '/account', {
      scope: 'account:read',
      sdk: 'account.get',
      errors: { 404: ['not_found'] },
      summary: 'Get the account',
      reply: Account,
      handle: ({ caller }) => accounts.get(caller),
    }),
    route('POST', '/account/stop', {
      scope: 'holds:decide',
      receipt: 'all',
      errors: { 403: ['bound_key'], 404: ['not_found'] },
      audit: 'account.stopped',
      summary: 'Stop the account',
      description:
        'From then on its keys may do nothing but `GET /v1/whoami` (forbidden, code account_stopped): calls that wait, WebSockets and SMTP logins end. E-mails and text ' +
        'messages, also scheduled ones, and webhooks wait. Mail is received, and people who are signed in do what they may. Not for keys that are bound to one identity (forbidden, code bound_key).',
      reply: Account,
      stores: false,
      // a stored answer would stop nothing
      idempotent: false,
      handle: ({ caller }) => stops.stop(caller),
    }),
    route('POST', '/account/resume', {
      scope: 'account:write',
      receipt: 'all',
      errors: { 403: ['session_required'], 404: ['not_found'] },
      audit: 'account.resumed',
      summary: 'Resume the account',
      description:
        'Its keys work again, and what waited is sent, at its place in the schedule. Requires the session of an owner: a key is forbidden, code session_required. The operator can too: `pillarbox account resume`.',
      reply: Account,
      stores: false,
      idempotent: false,
      handle: ({ caller }) => stops.resume(caller),
    }),
    route('POST', '/account/password', {
      scope: 'account:write',
      own: true,
      errors: {
        403: ['wrong_password', 'setup_link_required', 'beyond_own'],
        404: ['not_found'],
        409: ['password_changed', 'email_taken'],
        429: ['too_many_attempts', 'busy'],
      },
      audit: 'password.changed',
      summary: 'Set the password',
      description:
        'Requires current_password (if wrong: forbidden, code wrong_password). The first password is set by a one-time link (POST /v1/setup), never by a ' +
        'key (forbidden, code setup_link_required). A key that expires is forbidden, code beyond_own. Ends the other sessions of the person. Takes no Idempotency-Key: a stored fingerprint of ' +
        'this body would make guessing possible.',
      body: PasswordInput,
      reply: Account,
      // the stored fingerprint of a body is a fast hash, which must not cover a password
      idempotent: false,
      example: {
        body: {
          email: 'ada@example.com',
          current_password: 'a long and quiet evening',
          password: 'a longer and quieter evening',
        },
      },
      handle: ({ caller, body }) => changes.changePassword(caller, body),
    }),
    route('POST', '/account/totp', {
      scope: 'account:write',
      own: true,
      receipt: 'all',
      errors: {
        403: ['session_required', 'wrong_password'],
        404: ['not_found'],
        409: ['totp_enabled', 'no_password', 'password_changed'],
        429: ['too_many_attempts', 'busy'],
      },
      audit: 'second_factor.started',
      summary: 'Start adding a second factor',
      description:
        'Returns, only once, the secret for an authenticator app and ten recovery codes. It takes effect once it is confirmed; until then, a new call ' +
        'replaces it. If a second factor exists: conflict, code totp_enabled. Requires a session and the password: a key is forbidden, code ' +
        'session_required. Takes no Idempotency-Key: a stored fingerprint of this body would make guessing possible.',
      body: FactorInput,
      reply: SecondFactorSetup,
      secret: true,
      // the stored fingerprint of a body is a fast hash, which must not cover a password
      idempotent: false,
      example: { body: { password: 'a long and quiet evening' } },
      handle: ({ caller, body }) => changes.beginFactor(caller, body.password),
    }),
    route('POST', '/account/totp/confirm', {
      scope: 'account:write',
      own: true,
      receipt: ['totp_enabled'],
      errors: {
        403: ['session_required', 'wrong_code'],
        404: ['not_found'],
        409: ['nothing_to_confirm', 'no_password'],
        429: ['too_many_attempts'],
      },
      audit: 'second_factor.added',
      summary: 'Confirm the second factor',
      description:
        'Requires a code of the app; from then on signing in requires one. Requires a session. Ends the other sessions of the person.',
      body: FactorCode,
      reply: Account,
      example: { body: { code: '493817' } },
      handle: ({ caller, body }) => changes.confirmFactor(caller, body.code),
    }),
    route('DELETE', '/account/totp', {
      scope: 'account:write',
      own: true,
      errors: {
        403: ['session_required', 'wrong_password', 'wrong_code'],
        404: ['not_found'],
        409: ['no_password', 'password_changed'],
        429: ['too_many_attempts', 'busy'],
      },
      audit: 'second_factor.removed',
      summary: 'Remove the second factor',
      description:
        'Requires the password, a code of the app, or a recovery code, and a session (which was started with the second factor): a key is ' +
        'forbidden, code session_required. Ends the other sessions of the person.',
      body: FactorProof,
      reply: Deleted,
      example: { body: { password: 'a long and quiet evening' } },
      handle: ({ caller, body }) => changes.removeFactor(caller, body),
    }),
  ]
}
