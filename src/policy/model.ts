import * as z from 'zod'
import { HeldCard } from '../cards/model.ts'
import { HeldLogin } from '../logins/model.ts'
import { HoldState, Id, Paging, Timestamp } from '../core/shapes.ts'
import { Email } from '../mail/model.ts'
import { Sms } from '../sms/model.ts'
import { actions, findings, Policy } from '../core/policy.ts'

export const StoredPolicy = z
  .object({ ...Policy.shape, updated_at: Timestamp.nullable() })
  .meta({ id: 'Policy', description: 'updated_at is null where none was set: everything may leave' })
export type StoredPolicy = z.output<typeof StoredPolicy>

export const PolicyInput = Policy.partial().meta({ id: 'PolicyInput' })
export type PolicyInput = z.output<typeof PolicyInput>

const HoldReason = z.object({
  level: z
    .enum(['box', 'account', 'identity'])
    .meta({ description: 'whose policy: of pillarbox.yaml, of the account, of the identity' }),
  action: z.enum(actions),
  rule: z.int().nullable().meta({ description: 'its place among the rules, from 0; null for the preset' }),
  recipient: z.string().nullable(),
  unscanned: z
    .literal(true)
    .optional()
    .meta({ description: 'it looks at what a scan finds, and the message could not be scanned' }),
})
export type HoldReason = z.output<typeof HoldReason>

const HoldFinding = z.object({
  kind: z.enum(findings),
  place: z
    .string()
    .meta({ description: 'subject, body_text, body_html, text, the name of an attachment, or body of a text message' }),
  sample: z.string().meta({ description: 'its first characters' }),
})

export const HoldKind = z.enum(['email', 'sms', 'card', 'login'])
export type HoldKind = z.output<typeof HoldKind>

/** One in a list. */
export const HoldRow = z
  .object({
    ...HoldState.shape,
    kind: HoldKind,
    identity_id: Id('ident'),
    about: z.string().meta({ description: 'the id of the e-mail, of the text message, of the card, or of the login' }),
    created_by: z.string().nullable().meta({ description: 'the key that sent it, or that wants to reveal the card or login' }),
    created_at: Timestamp,
    decided_by: z
      .string()
      .nullable()
      .meta({ description: 'the key or person that decided; null for the operator, and for none' }),
    sha256: z.string().meta({
      description:
        'in hexadecimal: of the bytes of an e-mail; of a text message: to, a line end and body; of a card: its id, amount_cents and purpose, with line ends between; of a login: its id, label, url, place, updated_at and purpose',
    }),
    reasons: z.array(HoldReason),
    found: z.array(HoldFinding),
  })
  .meta({ id: 'HoldRow' })
export type HoldRow = z.output<typeof HoldRow>

export const Hold = z
  .object({
    ...HoldRow.shape,
    email: Email.nullable().meta({ description: 'as it would be sent; null once it was deleted' }),
    sms: Sms.nullable().meta({ description: 'as it would be sent; null once it was deleted' }),
    card: HeldCard.nullable().meta({ description: 'what would be revealed; null once it was deleted' }),
    login: HeldLogin.nullable().meta({ description: 'what would be revealed; null once it was deleted' }),
  })
  .meta({ id: 'Hold' })
export type Hold = z.output<typeof Hold>

export const HoldFilter = z.strictObject({
  ...Paging.shape,
  status: z.enum(['open', 'approved', 'rejected', 'expired', 'cancelled', 'all']).default('open'),
  identity_id: Id('ident').optional(),
})
export type HoldFilter = z.output<typeof HoldFilter>

const reason = z.string().max(1000).optional()

export const Approval = z.strictObject({
  sha256: z
    .string()
    .regex(/^[\da-f]{64}$/, { error: 'must be the sha256 of the hold: 64 hexadecimal digits' })
    .optional()
    .meta({ description: 'of what was looked at; another one is a conflict, code hold_changed' }),
  reason: reason.meta({ description: 'for the sender' }),
})
export type Approval = z.output<typeof Approval>

export const HoldLinkInput = z
  .strictObject({ token: z.string().min(1).max(1000).meta({ description: 'the part of the link after token=' }) })
  .meta({ id: 'HoldLinkInput' })

export const LinkDecision = z
  .strictObject({
    ...HoldLinkInput.shape,
    decision: z.enum(['approve', 'reject']),
    reason: reason.meta({ description: 'for the sender' }),
  })
  .meta({ id: 'LinkDecision' })
export type LinkDecision = z.output<typeof LinkDecision>

export const Rejection = z.strictObject({ reason: reason.meta({ description: 'for the sender, who may write anew' }) })
export type Rejection = z.output<typeof Rejection>
