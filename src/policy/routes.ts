import type { Caller } from '../core/scopes.ts'
import { Page } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Holds } from './holds.ts'
import { Approval, Hold, HoldFilter, HoldRow, PolicyInput, Rejection, StoredPolicy } from './model.ts'
import type { Policies } from './policies.ts'

const route = routeOf('Policy')
const scope = 'holds:decide'
const bound = { 403: ['bound_key'] }
const deciding = { 403: ['bound_key', 'own_hold'], 409: ['already_decided', 'hold_expired'] }
const example = {
  body: {
    preset: 'open',
    rules: [
      { when: { found: ['secret'] }, action: 'hold' },
      { when: { to: ['@partner.example'] }, action: 'send' },
    ],
  },
} as const

/** What may leave, and what waits for a person before it does. */
export function policyRoutes(policies: Policies, holds: Holds): AnyRoute[] {
  // a repetition returns the hold as it is now
  const again = ({ caller, params }: { caller: Caller; params: { id: string } }): Promise<HoldRow> => holds.row(caller, params.id)
  return [
    route('GET', '/policy', {
      scope,
      errors: bound,
      summary: 'Get what may leave the account',
      description: 'The policy for all of its identities. Not for keys that are bound to one (forbidden, code bound_key).',
      reply: StoredPolicy,
      handle: ({ caller }) => policies.get(caller, null),
    }),
    route('PATCH', '/policy', {
      scope,
      receipt: 'all',
      errors: { 403: [...bound[403], 'owner_required'] },
      audit: 'rules.changed',
      summary: 'Change what may leave the account',
      description:
        'What is left out stays as it is; rules are replaced. A message must pass the policies of the box, of the account and of the identity: the strictest holds. A rule that never matches, ' +
        'that repeats or contradicts another, or that names no address, domain or number is rejected with its place. Messages of a signed-in person are not held, as they look at them.',
      body: PolicyInput,
      reply: StoredPolicy,
      example,
      handle: ({ caller, body }) => policies.update(caller, null, body),
    }),
    route('GET', '/identities/:id/policy', {
      scope,
      errors: bound,
      summary: 'Get what may leave an identity',
      reply: StoredPolicy,
      handle: ({ caller, params }) => policies.get(caller, params.id),
    }),
    route('PATCH', '/identities/:id/policy', {
      scope,
      receipt: 'all',
      errors: { 403: [...bound[403], 'owner_required'] },
      audit: 'rules.changed',
      summary: 'Change what may leave an identity',
      description: 'What is left out stays as it is. The policies of the account and of the box hold too.',
      body: PolicyInput,
      reply: StoredPolicy,
      example,
      handle: ({ caller, params, body }) => policies.update(caller, params.id, body),
    }),
    route('GET', '/holds', {
      scope,
      sdk: 'holds.list',
      errors: bound,
      summary: 'List holds',
      description: 'What waits for a person before it leaves, newest first; by default only what is open.',
      query: HoldFilter,
      reply: Page(HoldRow),
      handle: ({ caller, query }) => holds.list(caller, query),
    }),
    route('GET', '/holds/:id', {
      scope,
      sdk: 'holds.get',
      errors: bound,
      audit: 'hold.read',
      summary: 'Get a hold',
      description: 'With the whole message as it would be sent, why it was held, and what was found in it.',
      reply: Hold,
      handle: ({ caller, params }) => holds.get(caller, params.id),
    }),
    route('POST', '/holds/:id/approve', {
      scope,
      sdk: 'holds.approve',
      receipt: 'all',
      errors: { ...deciding, 409: [...deciding[409], 'hold_changed'] },
      audit: 'hold.approved',
      summary: 'Approve what is held',
      description:
        'It leaves at once, or at its send_at. The key that sent it, and keys which that key made, cannot decide (forbidden, code own_hold). Send sha256 to approve nothing else than what was looked at.',
      body: Approval,
      reply: HoldRow,
      handle: ({ caller, params, body }) => holds.approve(caller, params.id, body),
      again,
    }),
    route('POST', '/holds/:id/reject', {
      stores: false,
      scope,
      sdk: 'holds.reject',
      receipt: 'all',
      errors: deciding,
      audit: 'hold.rejected',
      summary: 'Reject what is held',
      description: 'It never leaves. Its sender sees the reason, and may write anew.',
      body: Rejection,
      reply: HoldRow,
      handle: ({ caller, params, body }) => holds.reject(caller, params.id, body.reason),
      again,
    }),
  ]
}
