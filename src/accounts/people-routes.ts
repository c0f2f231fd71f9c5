import { Deleted, Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Invitations } from './invitations.ts'
import { AcceptanceInput, Invitation, InvitationInput, InvitationLink, Person, PersonRemoved, RoleInput } from './model.ts'
import type { People } from './people.ts'

const route = routeOf('People')

/** Who signs in to an account, and with which role. */
export function peopleRoutes(people: People, invitations: Invitations): AnyRoute[] {
  return [
    route('GET', '/people', {
      scope: 'account:read',
      errors: { 404: ['not_found'] },
      summary: 'List people',
      description: 'Those who sign in to the account, newest first.',
      query: Paging,
      reply: Page(Person),
      handle: ({ caller, query }) => people.list(caller, query),
    }),
    route('PATCH', '/people/:id', {
      scope: 'account:write',
      errors: { 403: ['session_required'], 409: ['last_owner'] },
      audit: {
        action: 'person.role_changed',
        detail: (body: { role: string }, { email }: Partial<Person>) => ({
          role: body.role,
          ...(email === undefined ? {} : { email }),
        }),
      },
      summary: 'Change the role of a person',
      description:
        'Ends their sessions; they sign in again. The last owner keeps the role: conflict, code last_owner. Requires a session of an owner: a key is forbidden, code session_required.',
      body: RoleInput,
      reply: Person,
      example: { body: { role: 'approver' } },
      handle: ({ caller, params, body }) => people.changeRole(caller, params.id, body.role),
    }),
    route('DELETE', '/people/:id', {
      scope: 'account:write',
      errors: { 403: ['session_required'], 409: ['last_owner'] },
      audit: {
        action: 'person.removed',
        detail: (_body: undefined, { email, role }: Partial<PersonRemoved>) => (email === undefined ? {} : { email, role }),
      },
      summary: 'Remove a person',
      description:
        'Ends their sessions and the invitations they made. Keys that they made stay: the audit log names them (actor, and action=key.created). The last owner cannot be removed: ' +
        'conflict, code last_owner. Requires a session of an owner: a key is forbidden, code session_required.',
      reply: PersonRemoved,
      handle: ({ caller, params }) => people.remove(caller, params.id),
    }),
    route('POST', '/people/invitations', {
      scope: 'account:write',
      errors: {
        403: ['session_required', 'wrong_password'],
        404: ['not_found'],
        409: ['email_taken', 'too_many_people', 'no_password'],
        429: ['too_many_attempts', 'busy'],
      },
      audit: {
        action: 'person.invited',
        detail: ({ email, role }: InvitationInput) => ({ email, role }),
      },
      summary: 'Invite a person',
      description:
        'Returns, only once, a link that makes a person with this address and role: once, within three days. Nothing is mailed. It replaces an earlier invitation of the address. Requires a ' +
        'session of an owner, and the password: a key is forbidden, code session_required. Takes no Idempotency-Key: a stored fingerprint of this body would make guessing possible.',
      body: InvitationInput,
      reply: InvitationLink,
      status: 201,
      secret: true,
      // the stored fingerprint of a body is a fast hash, which must not cover a password
      idempotent: false,
      example: { body: { email: 'grace@example.com', role: 'approver', password: 'a long and quiet evening' } },
      handle: ({ caller, body }) => invitations.create(caller, body),
    }),
    route('GET', '/people/invitations', {
      scope: 'account:read',
      errors: { 404: ['not_found'] },
      summary: 'List invitations',
      description: 'Those that can still be accepted, newest first, without their links.',
      query: Paging,
      reply: Page(Invitation),
      handle: ({ caller, query }) => invitations.list(caller, query),
    }),
    route('DELETE', '/people/invitations/:id', {
      scope: 'account:write',
      errors: { 403: ['session_required'] },
      audit: 'person.uninvited',
      summary: 'Withdraw an invitation',
      reply: Deleted,
      handle: ({ caller, params }) => invitations.withdraw(caller, params.id),
    }),
    route('POST', '/people/invitations/accept', {
      scope: 'public',
      rate: 'sign-in',
      errors: { 403: ['csrf', 'invitation_invalid'], 409: ['email_taken'], 429: ['busy'] },
      summary: 'Accept an invitation',
      description:
        'Requires the token of the link, and sets the password of the new person, who signs in afterwards. Requires the header Origin, as signing in does. An invitation that was ' +
        'accepted, withdrawn or replaced, or is older than three days, is forbidden, code invitation_invalid.',
      body: AcceptanceInput,
      reply: Person,
      example: { body: { token: 'what-follows-the-link', password: 'a long and quiet evening' } },
      handle: ({ caller, body }) => invitations.accept(body, caller),
    }),
  ]
}
