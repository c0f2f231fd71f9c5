import * as z from 'zod'
import { scopes } from '../core/scopes.ts'
import { Country, Id, Json, Line, Paging, Timestamp, TimestampInput } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'

const bytes = 16 * 1024

export const Metadata = z
  .record(z.string().min(1).max(128), Json)
  .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= bytes, { error: 'must be at most 16 KiB as JSON' })
  .meta({ description: 'free-form, at most 16 KiB' })

/** A display name. */
export const Name = Line(128)
const DateOfBirth = z.iso
  .date({ error: 'must be a date such as 1990-04-17' })
  .refine((text) => text <= new Date().toISOString().slice(0, 10), {
    error: 'must not be in the future',
  })

const IdentityStatus = z.enum(['active', 'suspended'])

/** An identity in lists. */
export const ReducedIdentity = z
  .object({
    id: Id('ident'),
    name: z.string(),
    email: z.string(),
    phone_number: z.string().nullable(),
    status: IdentityStatus,
    created_at: Timestamp,
  })
  .meta({ id: 'ReducedIdentity' })
export type ReducedIdentity = z.output<typeof ReducedIdentity>

/** The storage of an identity. */
export const Storage = z
  .object({
    used: z.int().meta({ description: 'bytes of e-mail, including the trash and the metadata of imported e-mail' }),
    limit: z.int().nullable().meta({ description: 'the mail quota in bytes (mail.quota); null means no limit' }),
    media: z.int().meta({ description: 'bytes of text messages and their media' }),
    trash: z.int().meta({ description: 'bytes of the above that are in the trash, purged early when space is short' }),
  })
  .meta({ id: 'Storage' })
export type Storage = z.output<typeof Storage>

/** A persistent identity: a name, an e-mail address, and the data that belongs to it. */
export const Identity = z
  .object({
    id: Id('ident'),
    name: z.string(),
    email: z.string().meta({ description: 'permanent; renaming does not change it' }),
    phone_number: z.string().optional(),
    date_of_birth: z.string(),
    status: IdentityStatus,
    metadata: z.record(z.string(), Json),
    storage: Storage.optional().meta({ description: 'omitted in events' }),
    can_send_outside: z.boolean().optional().meta({
      description: 'whether mail can be sent to addresses that are not on this box; omitted in events',
    }),
    cannot_send_outside_reason: z.string().nullable().optional().meta({
      description: 'why not, and who can change that; null if it can; omitted in events',
    }),
    expires_at: Timestamp.nullable().meta({ description: 'when it is deleted; null: when someone deletes it' }),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Identity' })
export type Identity = z.output<typeof Identity>

/** The caller itself: its rights, and the identity that it is bound to. */
export const WhoAmI = z
  .object({
    account_id: z.string(),
    key_id: Id('key').nullable().meta({ description: 'the API key; null for a session' }),
    session_id: Id('sess').nullable().meta({ description: 'the session of a signed-in person; null for a key' }),
    scopes: z.array(z.enum(scopes)),
    rate_limit: z.int().meta({ description: 'calls a minute; 0 means no limit' }),
    expires_at: Timestamp.nullable().meta({
      description: 'time at which the key, or the secret that was used, ends, also by the end of its identity',
    }),
    can_send_outside: z.boolean().meta({
      description:
        'whether mail can be sent to addresses that are not on this box: by the identity, else by a new one at the domain of the box',
    }),
    cannot_send_outside_reason: z.string().nullable().meta({ description: 'why not, and who can change that; null if it can' }),
    identity: Identity.nullable().meta({
      description: 'the one identity that the key is bound to; null if it reaches every identity of its account',
    }),
  })
  .meta({ id: 'WhoAmI' })
export type WhoAmI = z.output<typeof WhoAmI>

/** The local part of an assigned address. */
const LocalPart = z.string().regex(/^[a-z0-9](?:[a-z0-9]|[._-](?=[a-z0-9])){0,55}$/, {
  error: 'must be 1 to 56 of a-z, 0-9, dot, hyphen and underscore, beginning and ending with a letter or digit',
})

export const NewIdentity = z
  .strictObject({
    name: Name.optional().meta({ description: 'unique in the account, case-insensitive; generated if omitted' }),
    display_name: Name.optional().meta({ description: 'the same as name' }),
    provision_phone: z.boolean().optional(),
    phone_country: Country.optional(),
    metadata: Metadata.optional(),
    date_of_birth: DateOfBirth.optional(),
    email_username: LocalPart.optional(),
    email_domain: z.string().min(1).max(253).optional(),
    expires_at: TimestampInput.nullable().optional(),
  })
  .meta({ id: 'NewIdentity' })
export type NewIdentity = z.output<typeof NewIdentity>

const Words = z.string().min(1).max(200)

/** Filters a list of identities. */
export const IdentityFilter = z.strictObject({
  ...Paging.shape,
  name: z.string().min(1).max(512).optional().meta({ description: 'the identity with this name, case-insensitive' }),
  email: z.string().min(1).max(320).optional().meta({ description: 'the identity with this address or alias' }),
  query: Words.optional().meta({ description: 'a part of the name, address or number, case-insensitive' }),
  q: Words.optional().meta({ description: 'the same as query' }),
})
export type IdentityFilter = z.output<typeof IdentityFilter>

export const IdentityChange = z
  .strictObject({
    name: Name.optional(),
    display_name: Name.optional(),
    metadata: z
      .record(z.string().min(1).max(128), Json)
      .optional()
      .meta({ description: 'merged; null removes a key (RFC 7396)' }),
    date_of_birth: DateOfBirth.optional(),
    status: IdentityStatus.optional(),
    expires_at: TimestampInput.nullable().optional(),
  })
  .meta({ id: 'IdentityChange' })
export type IdentityChange = z.output<typeof IdentityChange>

const IdentityGone = z.object({ id: Id('ident'), name: z.string(), email: z.string(), status: z.literal('deleted') })

export const identityCreated = eventType('identity.created', ['identities:read'], 'An identity was created.', Identity)
export const identityUpdated = eventType('identity.updated', ['identities:read'], 'An identity was changed.', Identity)
export const identityDeleted = eventType('identity.deleted', ['identities:read'], 'An identity was deleted.', IdentityGone)

/** A further address of a domain, delivered to an identity of the domain's account. */
export const Alias = z
  .object({
    id: Id('alias'),
    domain_id: Id('dom'),
    address: z.string().meta({ description: 'also receives with a tag: local_part+tag' }),
    local_part: z.string(),
    identity_id: Id('ident').meta({ description: 'the identity that receives its mail and may send from it' }),
    created_at: Timestamp,
  })
  .meta({ id: 'Alias' })
export type Alias = z.output<typeof Alias>

export const NewAlias = z
  .strictObject({
    local_part: LocalPart.meta({ description: 'the part before the @' }),
    identity_id: Id('ident').meta({ description: 'an identity of the account' }),
  })
  .meta({ id: 'NewAlias' })
export type NewAlias = z.output<typeof NewAlias>

export const AliasChange = z
  .strictObject({ identity_id: Id('ident').optional().meta({ description: 'the identity that receives its mail from now on' }) })
  .meta({ id: 'AliasChange' })
export type AliasChange = z.output<typeof AliasChange>

export const DomainChange = z
  .strictObject({
    catch_all: Id('ident')
      .nullable()
      .optional()
      .meta({ description: 'the identity that receives mail for unknown addresses of the domain; null rejects such mail' }),
  })
  .meta({ id: 'DomainChange' })
export type DomainChange = z.output<typeof DomainChange>
