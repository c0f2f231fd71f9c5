import type * as z from 'zod'
import type { Caller } from '../core/scopes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import { Credential, Evaluation, NewReport, Question, Report, Reputation } from './model.ts'
import type { TrustReports } from './reports.ts'
import type { Reputations } from './reputations.ts'

const route = routeOf('Reputation and trust')

interface Nouns {
  reputations: Reputations
  reports: TrustReports
  issue: (caller: Caller, identityId: string) => Promise<z.input<typeof Credential>>
  evaluate: (caller: Caller, question: Question) => Promise<Evaluation>
}

export function routes({ reputations, reports, issue, evaluate }: Nouns): AnyRoute[] {
  return [
    route('GET', '/identities/:id/reputation', {
      scope: 'identities:read',
      sdk: 'identities.reputation',
      summary: 'Get the reputation of an identity',
      description:
        'Computed from the event log by the formula in docs/agents.md: the score is 0.5 plus the effects of all components. Mail within the ' +
        'account does not count.',
      reply: Reputation,
      handle: ({ caller, params }) => reputations.forCaller(caller, params.id),
    }),
    route('GET', '/agents/:id/reputation', {
      scope: 'identities:read',
      sdk: 'agents.reputation',
      summary: 'Get the reputation of an agent',
      description: 'The reputation of its identity. For agents of other accounts use trust/evaluate.',
      reply: Reputation,
      handle: ({ caller, params }) => reputations.ofAgent(caller, params.id),
    }),
    route('POST', '/identities/:id/events', {
      scope: 'identities:write',
      sdk: 'identities.report',
      audit: 'reputation.reported',
      summary: 'Report on a subject',
      description:
        'A report of this identity about an agent of this box or another, an address, or itself. positive, negative and dispute count in ' +
        'the reputation of an agent of another account; each counts half of the previous one of its type, at most five a day. Other names ' +
        'are only stored. The subject sees type and weight, but not the reporter, note and data.',
      body: NewReport,
      reply: Report,
      status: 201,
      example: {
        body: {
          type: 'positive',
          about: 'did:web:agents.example.com:v1:agents:ada',
          weight: 2,
          note: 'delivered what it promised',
        },
      },
      handle: ({ caller, params, body }) => reports.create(caller, params.id, body),
    }),
    route('POST', '/identities/:id/reputation/credential', {
      scope: 'identities:read',
      sdk: 'identities.credential',
      errors: { 409: ['identity_suspended'] },
      audit: { action: 'credential.issued', read: true },
      summary: 'Issue a reputation credential',
      description:
        'A Verifiable Credential (VC data model 2.0) as a JWT, signed by the box with a key of /.well-known/jwks.json, valid for 24 hours.',
      reply: Credential,
      handle: ({ caller, params }) => issue(caller, params.id),
    }),
    route('POST', '/trust/evaluate', {
      scope: 'identities:read',
      sdk: 'trust.evaluate',
      errors: { 404: ['not_found'] },
      summary: 'Evaluate trust',
      description:
        'Decides whether a subject can be trusted with an action, with reasons. Send exactly one of token, did, handle, identity_id and email. Each ' +
        'action requires its own score: read 0.3, message 0.4, delegate 0.6, payment 0.7, none 0.5; min_score overrides it. Up to ' +
        '0.2 below is review, further down deny.',
      body: Question,
      reply: Evaluation,
      example: { body: { email: 'sam@example.com', action: 'message' } },
      handle: ({ caller, body }) => evaluate(caller, body),
    }),
  ]
}
