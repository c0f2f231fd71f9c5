import * as z from 'zod'
import { eventType } from '../events/model.ts'
import { planned, type Planned } from '../core/planned.ts'
import { roles, scopes, whatScopesAllow } from '../core/scopes.ts'
import { Deleted, Flag, Id, Paging, Timestamp, TimestampInput } from '../core/shapes.ts'

const Scope = z.enum(scopes, { error: `must be one of ${scopes.join(', ')}` }).meta({ id: 'Scope', description: whatScopesAllow })

const Scopes = z
  .array(Scope)
  .min(1)
  .transform((list) => [...new Set(list)])
  .meta({ override: { type: 'array', items: { $ref: '#/components/schemas/Scope' }, minItems: 1 } })

/** The creator of an object: the id of a key or a session. */
export const Maker = z.string().nullable().meta({
  description:
    'the key or session that created it; null if it was created on the machine of the box, or before this was recorded',
})

/** Filters a list by the key or session that created its items. */
export const MadeBy = z.object({
  created_by: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .meta({ description: 'only objects created by this key or session, which may have ended' }),
})

/** A key in lists, without its secret. */
export const ApiKey = z
  .object({
    id: Id('key'),
    label: z.string(),
    scopes: z.array(Scope),
    key_prefix: z.string().meta({ description: 'the first characters, to tell keys apart' }),
    identity_id: Id('ident').nullable().meta({ description: 'the one identity the key is bound to' }),
    rate_limit: z.int().meta({ description: 'calls a minute, of this key and the keys it created together; 0 is no limit' }),
    created_at: Timestamp,
    created_by: Maker,
    rotated_by: Maker.meta({ description: 'the key or session that last gave it a new secret, if not the key itself' }),
    last_used_at: Timestamp.nullable(),
    expires_at: Timestamp.nullable(),
    revoked_at: Timestamp.nullable(),
  })
  .meta({ id: 'ApiKey' })
export type ApiKey = z.output<typeof ApiKey>

/** The only response that contains the secret. */
export const ApiKeyWithSecret = z
  .object({ ...ApiKey.shape, key: z.string().meta({ description: 'returned only once' }) })
  .meta({ id: 'ApiKeyWithSecret' })

export const NewApiKey = z
  .strictObject({
    label: z
      .string()
      .trim()
      .min(1)
      .max(128)
      .regex(/^\P{Cc}*$/u, { error: 'must be on one line' })
      .default('unnamed'),
    scopes: Scopes.optional().meta({ description: 'all scopes of the caller but holds:decide if omitted' }),
    identity_id: Id('ident')
      .optional()
      .meta({ description: 'binds the key to this identity: it sees and does nothing outside of it' }),
    rate_limit: z
      .int()
      .min(0)
      .max(1_000_000)
      .optional()
      .meta({ description: 'calls a minute, of this key and the keys it creates; 0 is no limit' }),
    expires_at: TimestampInput.optional().meta({ description: 'never if omitted' }),
  })
  .meta({ id: 'NewApiKey' })
export type NewApiKey = z.output<typeof NewApiKey>

export const ApiKeyFilter = Paging.extend(MadeBy.shape)
export type ApiKeyFilter = z.output<typeof ApiKeyFilter>

export const Revocation = z.strictObject({
  keep: Flag.default(false).meta({ description: 'keeps what the key created; otherwise that ends with the key' }),
})

const ended = z.int().min(0)

export const KeyRevoked = z
  .object({
    ...Deleted.shape,
    ended: z.object({ api_keys: ended, webhooks: ended, jobs: ended, scheduled_emails: ended, holds: ended }).meta({
      id: 'EndedWithKey',
      description: 'number of objects created by the key that ended; 0 with keep; holds are those of text messages and cards',
    }),
  })
  .meta({ id: 'KeyRevoked' })
export type KeyRevoked = z.output<typeof KeyRevoked>

const keyReaders = ['account:read' as const]
export const keyCreated = eventType('key.created', keyReaders, 'An API key was created.', ApiKey)
export const keyRotated = eventType('key.rotated', keyReaders, 'An API key has a new secret.', ApiKey)
export const keyRevoked = eventType(
  'key.revoked',
  keyReaders,
  'An API key was revoked. The keys that ended with it have no event of their own.',
  z.object({ ...ApiKey.shape, ended: KeyRevoked.shape.ended }).meta({ id: 'RevokedApiKey' }),
)

export const Rotation = z
  .strictObject({
    grace_seconds: z.int().min(0).max(604_800).default(0).meta({ description: 'time for which the old secret still works' }),
  })
  .meta({ id: 'Rotation' })

const number = z.int().min(0)

/** Limits and usage of an account. */
export const Subscription = z
  .object({
    plan: z.literal('self_hosted'),
    status: z.literal('active'),
    limits: z.object(ofEach(number.nullable())).meta({ id: 'PlanLimits', description: 'null means no limit' }),
    usage: z.object(ofEach(number)).meta({ id: 'PlanUsage' }),
    current_period_start: Timestamp.meta({ description: 'the start of the month in UTC' }),
    current_period_end: Timestamp.meta({ description: 'time at which emails_sent and sms_sent are reset to 0' }),
  })
  .meta({ id: 'Subscription' })
export type Subscription = z.output<typeof Subscription>

function ofEach<Shape extends z.ZodType>(shape: Shape): Record<Planned, Shape> {
  return Object.fromEntries(planned.map((what) => [what, shape])) as Record<Planned, Shape>
}
/** What a person of an account may do. */
const Role = z.enum(roles).meta({
  id: 'Role',
  description:
    'owner: everything; approver: what the reading scopes show, and decides what is held; reader: what the reading scopes show',
})

/** The name of an account. */
export const Name = z
  .string()
  .trim()
  .min(1, { error: 'must not be empty' })
  .max(128, { error: 'must have at most 128 characters' })
  .regex(/^\P{Cc}*$/u, { error: 'must be on one line' })

/** The address a person signs in with; no mail is sent to it but digests of holds (`policy.digest`). */
export const Email = z
  .string()
  .max(254, { error: 'must have at most 254 characters' })
  .regex(/^[^\s@\p{Cc}]{1,64}@[^\s@\p{Cc}]+$/u, { error: 'must be an address such as ada@example.com' })
  .refine((address) => !/[\p{C}\p{Default_Ignorable_Code_Point}]/u.test(address), {
    error: 'must have no characters that are not seen, so that no two addresses look alike',
  })
  .meta({ example: 'ada@example.com' })

const Typed = z.string().min(1).max(1000)

/** An account, as its own callers see it. */
export const Account = z
  .object({
    id: Id('acct'),
    name: z.string(),
    email: z.string().nullable().meta({ description: 'the address used to sign in' }),
    password_set: z.boolean(),
    totp_enabled: z.boolean().meta({ description: 'whether signing in requires a second factor' }),
    recovery_codes_left: z.int(),
    stopped_at: Timestamp.nullable().meta({ description: 'since when it is stopped' }),
    created_at: Timestamp,
  })
  .meta({ id: 'Account' })
export type Account = z.output<typeof Account>

const Stop = z.object({
  id: Id('acct'),
  by: z.string().nullable().meta({ description: 'the person or key; null for the operator' }),
  stopped_at: Timestamp.nullable(),
})

const stopReaders = ['account:read' as const]
export const accountStopped = eventType(
  'account.stopped',
  stopReaders,
  'The account was stopped: its keys do nothing, and nothing is sent.',
  Stop,
)
export const accountResumed = eventType('account.resumed', stopReaders, 'A stopped account was resumed.', Stop)

export const AccountInput = z
  .strictObject({
    name: Name.meta({ description: 'unique without regard to case' }),
    email: Email.meta({ description: 'the address used to sign in' }),
    password: Typed.meta({ description: '8 to 256 characters, none of the most common' }),
  })
  .meta({ id: 'AccountWish' })

export const PasswordReset = z
  .strictObject({
    password: Typed.meta({ description: '8 to 256 characters, none of the most common' }),
    email: Email.optional().meta({ description: 'a new address; required if there is none yet' }),
    remove_second_factor: z.boolean().default(false),
  })
  .meta({ id: 'PasswordReset' })

export const SignInInput = z
  .strictObject({
    email: Typed,
    password: Typed,
    totp: Typed.optional().meta({ description: 'the code of the authenticator app, or a recovery code' }),
    recovery_code: Typed.optional().meta({ description: 'in place of totp' }),
  })
  .meta({ id: 'SignInWish' })
export type SignInInput = z.output<typeof SignInInput>

/** The signed-in person. */
export const Session = z
  .object({
    id: Id('sess'),
    account: z.object({ id: Id('acct'), name: z.string(), email: z.string() }),
    person: z.object({ id: Id('person'), role: Role }),
    totp_enabled: z.boolean(),
    created_at: Timestamp,
    expires_at: Timestamp.meta({ description: 'time at which it ends at the latest; it ends earlier when idle' }),
  })
  .meta({ id: 'Session' })
export type Session = z.output<typeof Session>

/** A session in lists. */
export const SessionEntry = z
  .object({
    id: Id('sess'),
    current: z.boolean().meta({ description: 'whether it is the session of this call' }),
    ip: z.string(),
    user_agent: z.string(),
    created_at: Timestamp,
    last_used_at: Timestamp,
    expires_at: Timestamp,
  })
  .meta({ id: 'SessionEntry' })
export type SessionEntry = z.output<typeof SessionEntry>

/** The number of sessions that ended. */
export const SessionsEnded = z.object({ id: Id('acct'), deleted: z.literal(true), count: z.int() }).meta({ id: 'SessionsEnded' })

export const PasswordInput = z
  .strictObject({
    email: Email.optional().meta({ description: 'a new address to sign in with; unchanged if omitted' }),
    current_password: Typed.optional().meta({ description: 'the present address' }),
    password: Typed.meta({ description: '8 to 256 characters, none of the most common' }),
  })
  .meta({ id: 'PasswordWish' })
export type PasswordInput = z.output<typeof PasswordInput>

/** The first password of an account, and the token that allows setting it. */
export const SetupInput = z
  .strictObject({
    token: Typed.meta({ description: 'the part of the link after #token=' }),
    email: Email.meta({ description: 'the address to sign in with' }),
    password: Typed.meta({ description: '8 to 256 characters, none of the most common' }),
  })
  .meta({ id: 'SetupWish' })
export type SetupInput = z.output<typeof SetupInput>

export const SetupLink = z
  .object({ url: z.string().meta({ description: 'returned only once; can be used once' }), expires_at: Timestamp })
  .meta({ id: 'SetupLink' })
export type SetupLink = z.output<typeof SetupLink>

/** Returned only once. */
export const SecondFactorSetup = z
  .object({
    uri: z.string().meta({ description: 'otpauth://, for the QR code' }),
    secret: z.string().meta({ description: 'the secret in base32, for manual entry' }),
    recovery_codes: z.array(z.string()).meta({ description: 'each replaces a code once' }),
  })
  .meta({ id: 'SecondFactorSetup' })
export type SecondFactorSetup = z.output<typeof SecondFactorSetup>

export const FactorInput = z
  .strictObject({ password: Typed.meta({ description: 'the password used to sign in' }) })
  .meta({ id: 'FactorWish' })

export const FactorCode = z.strictObject({ code: Typed }).meta({ id: 'FactorCode' })

export const FactorProof = z
  .strictObject({
    password: Typed.optional(),
    code: Typed.optional().meta({ description: 'a code of the app, or a recovery code' }),
  })
  .meta({ id: 'FactorProof', description: 'One of the two is required.' })
export type FactorProof = z.output<typeof FactorProof>

/** Someone who signs in to an account. */
export const Person = z
  .object({
    id: Id('person'),
    email: z.string().meta({ description: 'the address used to sign in' }),
    role: Role,
    totp_enabled: z.boolean().meta({ description: 'whether signing in requires a second factor' }),
    created_at: Timestamp,
  })
  .meta({ id: 'Person' })
export type Person = z.output<typeof Person>

export const RoleInput = z.strictObject({ role: Role }).meta({ id: 'RoleInput' })

export const PersonRemoved = z
  .object({ id: Id('person'), deleted: z.literal(true), email: z.string(), role: Role })
  .meta({ id: 'PersonRemoved' })
export type PersonRemoved = z.output<typeof PersonRemoved>

export const InvitationInput = z
  .strictObject({
    email: Email.meta({ description: 'the address that the person will sign in with' }),
    role: Role,
    password: Typed.optional().meta({ description: 'that of the person who invites; required in a session' }),
  })
  .meta({ id: 'InvitationInput' })
export type InvitationInput = z.output<typeof InvitationInput>

/** One that was not accepted yet. */
export const Invitation = z
  .object({
    id: Id('inv'),
    email: z.string(),
    role: Role,
    created_by: z.string().nullable().meta({ description: 'the person who invited; null for the operator' }),
    created_at: Timestamp,
    expires_at: Timestamp,
  })
  .meta({ id: 'Invitation' })
export type Invitation = z.output<typeof Invitation>

export const InvitationLink = z
  .object({ ...Invitation.shape, url: z.string().meta({ description: 'returned only once; can be used once' }) })
  .meta({ id: 'InvitationLink' })
export type InvitationLink = z.output<typeof InvitationLink>

export const AcceptanceInput = z
  .strictObject({
    token: Typed.meta({ description: 'the part of the link after token=' }),
    password: Typed.meta({ description: '8 to 256 characters, none of the most common' }),
  })
  .meta({ id: 'AcceptanceInput' })
export type AcceptanceInput = z.output<typeof AcceptanceInput>
