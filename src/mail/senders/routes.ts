import { type AnyRoute, routeOf } from '../../http/route.ts'
import { Email } from '../model.ts'
import type { Releases } from './releases.ts'
import { SenderRules, SenderRulesInput } from './model.ts'
import type { SenderRulesStore } from './rules.ts'

const route = routeOf('Senders')
const example = { body: { block: ['@spam.example'], max_score: 49 } }

/** Who may write to an identity, and what becomes of what was set aside. */
export function senderRoutes(rules: SenderRulesStore, releases: Releases): AnyRoute[] {
  return [
    route('GET', '/senders', {
      scope: 'account:read',
      sdk: 'senders.get',
      errors: { 403: ['bound_key'] },
      summary: 'Get who may write to the account',
      description: 'The rules for all of its identities. Not for keys that are bound to one (forbidden, code bound_key).',
      reply: SenderRules,
      handle: ({ caller }) => rules.get(caller, null),
    }),
    route('PATCH', '/senders', {
      scope: 'account:write',
      alsoScope: ['holds:decide'],
      sdk: 'senders.update',
      errors: { 403: ['bound_key'] },
      audit: 'rules.changed',
      summary: 'Change who may write to the account',
      description:
        'What is left out stays as it is; a list is replaced, and an empty one allows or blocks nobody. A blocked envelope sender is rejected at RCPT (550 5.7.1), a message whose From or DMARC result the rules of ' +
        'all recipients refuse at the end of DATA; what they refuse for some recipients only, and a score above max_score, is set aside: stored with spam: true and the reason in set_aside. ' +
        'An entry that is no address or domain, or that is allowed and blocked, is rejected with its place.',
      body: SenderRulesInput,
      reply: SenderRules,
      example,
      handle: ({ caller, body }) => rules.update(caller, null, body),
    }),
    route('GET', '/identities/:id/senders', {
      scope: 'account:read',
      sdk: 'senders.getOfIdentity',
      errors: { 403: ['bound_key'] },
      summary: 'Get who may write to an identity',
      reply: SenderRules,
      handle: ({ caller, params }) => rules.get(caller, params.id),
    }),
    route('PATCH', '/identities/:id/senders', {
      scope: 'account:write',
      alsoScope: ['holds:decide'],
      sdk: 'senders.updateOfIdentity',
      errors: { 403: ['bound_key'] },
      audit: 'rules.changed',
      summary: 'Change who may write to an identity',
      description: 'What is left out stays as it is. The rules of the account hold too: a message must pass both.',
      body: SenderRulesInput,
      reply: SenderRules,
      example,
      handle: ({ caller, params, body }) => rules.update(caller, params.id, body),
    }),
    route('POST', '/identities/:id/emails/:email_id/release', {
      scope: 'holds:decide',
      alsoScope: ['messages:read', 'emails:read'],
      sdk: 'emails.release',
      errors: { 403: ['bound_key'] },
      audit: 'email.released',
      summary: 'Release an e-mail that was set aside',
      description:
        'It is listed as others are from then on, with spam: false, and raises email.released. An e-mail that was not set aside stays as it is. Not for keys that are bound to one identity (forbidden, code bound_key).',
      reply: Email,
      handle: ({ caller, params }) => releases.release(caller, params.id, params.email_id),
      // nothing is left to be done, and the e-mail is as it is now
      again: ({ caller, params }) => releases.release(caller, params.id, params.email_id),
    }),
  ]
}
