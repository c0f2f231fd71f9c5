import { Deleted, Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Logins } from './logins.ts'
import { Login, LoginChange, LoginPurpose, NewLogin, RevealedLogin } from './model.ts'
import type { Reveals } from './reveals.ts'

const route = routeOf('Logins')

/** A held reveal commits too. */
const revealed = {
  action: 'login.revealed',
  // the one text of a caller in the audit log: it is for whoever reads that
  detail: ({ purpose }: LoginPurpose) => (purpose === undefined ? {} : { purpose }),
  when: (outcome: object) => !('hold' in outcome),
}

export function routes(logins: Logins, reveals: Reveals): AnyRoute[] {
  return [
    route('POST', '/identities/:id/logins', {
      scope: 'identities:write',
      errors: { 403: ['plan_limit_reached'], 409: ['too_many_logins'] },
      audit: 'login.created',
      summary: 'Store a login',
      description:
        'User name, password, API key and notes for a place elsewhere; they are stored encrypted. At most 1,000 of an identity. Takes no ' +
        'Idempotency-Key: a stored fingerprint of this body would make guessing possible.',
      body: NewLogin,
      reply: Login,
      status: 201,
      idempotent: false,
      location: (login) => `/v1/logins/${login.id}`,
      example: { body: { label: 'GitHub', url: 'https://github.com/login', username: 'ada', password: 'correct horse' } },
      handle: ({ caller, params, body }) => logins.create(caller, params.id, body),
    }),
    route('GET', '/identities/:id/logins', {
      scope: 'identities:read',
      summary: 'List logins',
      description: 'Newest first, without their passwords, API keys and notes.',
      query: Paging,
      reply: Page(Login),
      handle: ({ caller, params, query }) => logins.list(caller, params.id, query),
    }),
    route('GET', '/logins/:id', {
      scope: 'identities:read',
      summary: 'Get a login',
      description: 'Without its password, API key and notes.',
      reply: Login,
      handle: ({ caller, params }) => logins.get(caller, params.id),
    }),
    route('PATCH', '/logins/:id', {
      scope: 'identities:write',
      errors: { 403: ['plan_limit_reached'] },
      audit: 'login.changed',
      summary: 'Change a login',
      description:
        'null removes a value. When a key changes the host of the url, the login is a place of its own for policies: that others of this host were approved does not count for it.',
      body: LoginChange,
      reply: Login,
      example: { body: { password: 'correct horse battery' } },
      handle: ({ caller, params, body }) => logins.change(caller, params.id, body),
    }),
    route('POST', '/logins/:id/reveal', {
      scope: 'identities:read',
      errors: { 403: ['policy_refused'], 409: ['held'], 429: ['too_many_holds'] },
      audit: revealed,
      summary: 'Reveal a login',
      description:
        'Its user name, password, API key and notes. Every reveal is recorded by a login.revealed event, with key, address and purpose, before the ' +
        'response. Where a policy holds it for a person (conflict, code held), the same call succeeds once, within an hour of the approval. Takes no ' +
        'Idempotency-Key: each call is a reveal.',
      body: LoginPurpose,
      reply: RevealedLogin,
      secret: true,
      idempotent: false,
      example: { body: { purpose: 'to open an issue' } },
      handle: ({ caller, params, body }) => reveals.reveal(caller, params.id, body),
    }),
    route('DELETE', '/logins/:id', {
      scope: 'identities:write',
      audit: 'login.deleted',
      summary: 'Delete a login',
      description: 'Permanent: what is sealed is overwritten.',
      reply: Deleted,
      handle: ({ caller, params }) => logins.remove(caller, params.id),
    }),
  ]
}
