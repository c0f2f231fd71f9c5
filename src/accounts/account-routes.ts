import { Deleted } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Accounts } from './accounts.ts'
import { Account, FactorCode, FactorProof, FactorInput, PasswordInput, SecondFactorSetup } from './model.ts'
import type { People } from './people.ts'

const route = routeOf('Account')

export function accountRoutes(accounts: Accounts, people: People): AnyRoute[] {
  return [
    route('GET', '/account', {
      scope: 'account:read',
      summary: 'Get the account',
      reply: Account,
      handle: ({ caller }) => accounts.get(caller),
    }),
    route('POST', '/account/password', {
      scope: 'account:write',
      summary: 'Set the password',
      description:
        'With current_password (wrong: forbidden, code wrong_password). The first password is set by a one-time link (POST /v1/setup), and by no ' +
        'key (forbidden, code setup_link_required). A key that expires is forbidden, code beyond_own. Ends all other sessions. Takes no Idempotency-Key: what would be kept of ' +
        'this body could be guessed from.',
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
      handle: ({ caller, body }) => people.changePassword(caller, body),
    }),
    route('POST', '/account/totp', {
      scope: 'account:write',
      receipt: 'all',
      summary: 'Begin a second factor',
      description:
        'Answers, this once, what an authenticator app needs and ten recovery codes. It counts once it is confirmed; until then, beginning anew ' +
        'replaces it. There is one already: conflict, code totp_enabled. Only with a session and the password: a key is forbidden, code ' +
        'session_required. Takes no Idempotency-Key: what would be kept of this body could be guessed from.',
      body: FactorInput,
      reply: SecondFactorSetup,
      secret: true,
      // the stored fingerprint of a body is a fast hash, which must not cover a password
      idempotent: false,
      example: { body: { password: 'a long and quiet evening' } },
      handle: ({ caller, body }) => people.beginFactor(caller, body.password),
    }),
    route('POST', '/account/totp/confirm', {
      scope: 'account:write',
      receipt: ['totp_enabled'],
      summary: 'Confirm the second factor',
      description: 'With a code of the app: from now on signing in takes one. Only with a session. Ends all other sessions.',
      body: FactorCode,
      reply: Account,
      example: { body: { code: '493817' } },
      handle: ({ caller, body }) => people.confirmFactor(caller, body.code),
    }),
    route('DELETE', '/account/totp', {
      scope: 'account:write',
      summary: 'Remove the second factor',
      description:
        'With the password, a code of the app, or a recovery code, and only with a session (which takes the second factor to begin): a key is ' +
        'forbidden, code session_required. Ends all other sessions.',
      body: FactorProof,
      reply: Deleted,
      example: { body: { password: 'a long and quiet evening' } },
      handle: ({ caller, body }) => people.removeFactor(caller, body),
    }),
  ]
}
