import * as z from 'zod'
import { Id, Json, Timestamp } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'
import { Metadata } from '../identities/model.ts'

export const Tier = z.enum(['bronze', 'silver', 'gold', 'platinum'])
export type Tier = z.output<typeof Tier>

export const Reputation = z
  .object({
    subject: z.string().meta({ description: 'the DID of the agent, else the id of the identity' }),
    score: z.number().meta({ description: 'from 0 to 1; a new identity has 0.5' }),
    tier: Tier,
    components: z.array(
      z.object({
        name: z.string(),
        value: z.number().meta({ description: 'the number counted' }),
        effect: z.number().meta({ description: 'its effect on the score, positive or negative' }),
        explanation: z.string(),
      }),
    ),
    counters: z.record(z.string(), z.number()),
    updated_at: Timestamp,
  })
  .meta({ id: 'Reputation' })
export type Reputation = z.output<typeof Reputation>

export interface ReputationSource {
  of(identityId: string): Promise<Reputation>
}

export const NewReport = z
  .strictObject({
    type: z
      .string()
      .max(64)
      .regex(/^(?:positive|negative|dispute|[a-z0-9_]+(?:\.[a-z0-9_]+)+)$/, {
        error: 'must be positive, negative, dispute, or a custom dotted name such as task.completed',
      }),
    about: z.string().trim().min(1).max(512).optional().meta({
      description: 'the id, handle, DID or address of an agent, or the id of an identity; default: the reporter',
    }),
    weight: z.int().min(1).max(5).default(1),
    note: z.string().trim().min(1).max(500).optional().meta({ description: 'private: not shown to the subject' }),
    data: Metadata.optional().meta({ description: 'private' }),
  })
  .meta({ id: 'NewReport' })
export type NewReport = z.output<typeof NewReport>

export const Report = z
  .object({
    id: Id('rep'),
    direction: z.enum(['given', 'received']).meta({ description: 'whether this identity made the report or is its subject' }),
    type: z.string(),
    about: z.string().nullable().meta({ description: 'as sent; null for the subject' }),
    subject: z.string().meta({ description: 'a DID, the id of an identity of the account, or an address' }),
    weight: z.int().meta({ description: 'as sent; 0 for reports within an account' }),
    counted_weight: z.number().meta({ description: 'the effective weight' }),
    note: z.string().nullable().meta({ description: 'null for the subject' }),
    data: z.record(z.string(), Json),
    created_at: Timestamp,
  })
  .meta({ id: 'Report' })
export type Report = z.output<typeof Report>

export const Credential = z
  .object({
    credential: z.string().meta({ description: 'a Verifiable Credential (VC 2.0) as a JWT, type vc+jwt' }),
    expires_at: Timestamp,
  })
  .meta({ id: 'Credential' })

export const Action = z.enum(['read', 'message', 'delegate', 'payment'])
export type Action = z.output<typeof Action>

export const Question = z
  .strictObject({
    token: z
      .string()
      .min(1)
      .max(16_384)
      .optional()
      .meta({ description: 'an identity token; exactly one of these five is required' }),
    did: z
      .string()
      .max(512)
      .regex(/^did:[a-z0-9]+:[^\s#?/\\]+$/, { error: 'must be a DID such as did:web:example.com' })
      .optional(),
    handle: z.string().trim().min(1).max(64).optional().meta({ description: 'the handle of an agent of this box' }),
    identity_id: Id('ident').optional().meta({ description: "an identity of the caller's account" }),
    email: z
      .string()
      .trim()
      .max(320)
      .regex(/^[^@\s]+@[^@\s]+$/, { error: 'must be an address such as ada@example.com' })
      .optional(),
    audience: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .meta({ description: 'the expected audience of the token; default: this box; only with token' }),
    aud: z.string().min(1).max(512).optional().meta({ description: 'the same as audience' }),
    action: Action.optional().meta({ description: 'the action to allow; each has its own min_score' }),
    min_score: z.number().min(0).max(1).optional().meta({ description: 'overrides the min_score of the action' }),
  })
  .meta({ id: 'TrustQuestion' })
export type Question = z.output<typeof Question>

export const Evaluation = z
  .object({
    decision: z.enum(['allow', 'review', 'deny']),
    score: z.number(),
    tier: Tier,
    min_score: z.number(),
    subject: z.object({
      did: z.string().nullable(),
      handle: z.string().nullable(),
      identity_id: Id('ident').nullable().meta({ description: "only of the caller's account" }),
      email: z.string().nullable(),
      proven: z.boolean().meta({ description: 'whether a token authenticates the subject' }),
    }),
    reasons: z.array(z.string()),
  })
  .meta({ id: 'TrustEvaluation' })
export type Evaluation = z.output<typeof Evaluation>

export const reputationUpdated = eventType(
  'reputation.updated',
  ['identities:read'],
  "An identity's tier changed, or a report about it counted.",
  Reputation,
)
export const reputationReported = eventType(
  'reputation.reported',
  ['identities:read'],
  'An identity made a report (given), or a report about it was made (received).',
  Report,
)
