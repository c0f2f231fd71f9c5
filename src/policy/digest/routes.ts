import { type AnyRoute, routeOf } from '../../http/route.ts'
import { Hold, HoldLinkInput, HoldRow, LinkDecision } from '../model.ts'
import type { HoldLinks } from './hold-links.ts'

const route = routeOf('Policy')

/** What the page behind the links of a digest calls: the token is in the body, as to open a link must change nothing. */
export function holdLinkRoutes(links: HoldLinks): AnyRoute[] {
  return [
    route('POST', '/hold-links/read', {
      stores: false,
      scope: 'public',
      errors: { 403: ['hold_link_invalid'] },
      summary: 'Get the hold of a mailed link',
      description: 'Takes the token of a link in a digest (policy.digest), and changes nothing.',
      body: HoldLinkInput,
      reply: Hold,
      example: { body: { token: 'what-follows-the-link' } },
      handle: ({ caller, body }) => links.read(body.token, caller),
    }),
    route('POST', '/hold-links/decide', {
      stores: false,
      scope: 'public',
      errors: { 403: ['hold_link_invalid'], 409: ['already_decided', 'hold_expired', 'hold_changed'] },
      summary: 'Decide the hold of a mailed link',
      description:
        'Approves or rejects, once, the one hold that the link is about, as the person it was mailed to; the bytes must be those that were held then. A person who was removed since, is ' +
        'neither owner nor approver any more, or signs in with another address, is forbidden, code hold_link_invalid.',
      body: LinkDecision,
      reply: HoldRow,
      example: { body: { token: 'what-follows-the-link', decision: 'reject' } },
      handle: ({ caller, body }) => links.decide(body, caller),
    }),
  ]
}
