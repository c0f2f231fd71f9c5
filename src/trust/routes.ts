import { type AnyRoute, routeOf } from '../http/route.ts'
import type { ReputationCredentials } from './credentials.ts'
import type { Evaluations } from './evaluations.ts'
import { Credential, Evaluation, NewReport, Question, Report, Reputation } from './model.ts'
import type { TrustReports } from './reports.ts'
import type { Reputations } from './reputations.ts'

const route = routeOf('Reputation and trust')

interface Nouns {
  reputations: Reputations
  reports: TrustReports
  credentials: ReputationCredentials
  evaluations: Evaluations
}

export function routes({ reputations, reports, credentials, evaluations }: Nouns): AnyRoute[] {
  return [
    route('GET', '/identities/:id/reputation', {
      scope: 'identities:read',
      summary: 'Get the reputation of an identity',
      description:
        'Worked out from the log by a formula that docs/agents.md gives: the score is 0.5 and the effects of all components. Mail within the ' +
        'account counts for nothing.',
      reply: Reputation,
      handle: ({ caller, params }) => reputations.forCaller(caller, params.id),
    }),
    route('GET', '/agents/:id/reputation', {
      scope: 'identities:read',
      summary: 'Get the reputation of an agent',
      description: 'That of its identity. About agents of others ask trust/evaluate.',
      reply: Reputation,
      handle: ({ caller, params }) => reputations.ofAgent(caller, params.id),
    }),
    route('POST', '/identities/:id/events', {
      scope: 'identities:write',
      summary: 'Report on somebody',
      description:
        'What this identity has to say of an agent of this box or another, of an address, or of itself. positive, negative and dispute count in ' +
        'the reputation of an agent of another account; each counts half of the one before of its type, and five a day at most. Other names ' +
        'are only kept. The subject is told type and weight, not who reported, nor note and data.',
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
      summary: 'Issue a reputation credential',
      description:
        'A Verifiable Credential (VC data model 2.0) as a JWT, signed by the box with a key of /.well-known/jwks.json, good for 24 hours.',
      reply: Credential,
      handle: ({ caller, params }) => credentials.issue(caller, params.id),
    }),
    route('POST', '/trust/evaluate', {
      scope: 'identities:read',
      summary: 'Evaluate trust',
      description:
        'Whether a subject can be trusted with an action, with reasons. Give exactly one of token, did, handle, identity_id and email. Each ' +
        'action asks for a score of its own: read 0.3, message 0.4, delegate 0.6, payment 0.7, none 0.5; min_score asks for another. Up to ' +
        '0.2 below is review, further down deny.',
      body: Question,
      reply: Evaluation,
      example: { body: { email: 'sam@example.com', action: 'message' } },
      handle: ({ caller, body, signal }) => evaluations.answer(caller, body, signal),
    }),
  ]
}
