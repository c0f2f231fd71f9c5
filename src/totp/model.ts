import * as z from 'zod'
import { Count, Id, Line, Timestamp } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'

const algorithms = ['SHA1', 'SHA256', 'SHA512'] as const

/** In any case, with or without the dash: `sha-256`. */
export const Algorithm = z
  .string()
  .transform((text) => text.toUpperCase().replace(/^(SHA)-/, '$1'))
  .pipe(z.enum(algorithms, { error: 'must be SHA1, SHA256 or SHA512' }))
  .meta({ override: { type: 'string', enum: [...algorithms] } })

const seconds = { error: 'must be a whole number of seconds from 15 to 120' }
export const Period = z.int(seconds).min(15, seconds).max(120, seconds)

const digits = { error: 'must be 6, 7 or 8' }
export const Digits = z.int(digits).min(6, digits).max(8, digits)

export const ServiceName = Line(128)
export const AccountName = Line(128)

/** A one-time password of a service, without its secret. */
export const TotpEntry = z
  .object({
    id: Id('totp'),
    identity_id: Id('ident'),
    service_name: z.string(),
    account_name: z.string().nullable().meta({ description: 'the account at the service, as named by the uri or the caller' }),
    algorithm: z.enum(algorithms),
    digits: z.int(),
    period: z.int().meta({ description: 'seconds for which a code is valid' }),
    created_at: Timestamp,
  })
  .meta({ id: 'TotpEntry' })
export type TotpEntry = z.output<typeof TotpEntry>

export const NewTotpEntry = z
  .strictObject({
    secret: z
      .string()
      .min(1)
      .max(4096)
      .optional()
      .meta({ description: 'base32, case-insensitive; spaces, dashes and padding are ignored. This or uri is required' }),
    uri: z
      .string()
      .min(1)
      .max(8192)
      .optional()
      .meta({ description: 'otpauth://totp/…, the content of the QR code; provides the fields omitted below' }),
    service_name: ServiceName.optional().meta({ description: 'required unless the uri names one' }),
    account_name: AccountName.optional(),
    algorithm: Algorithm.optional().meta({ description: 'default: the value in the uri, else SHA1' }),
    digits: Digits.optional().meta({ description: 'default: the value in the uri, else 6' }),
    period: Period.optional().meta({ description: 'seconds; default: the value in the uri, else 30' }),
  })
  .meta({ id: 'NewTotpEntry' })
export type NewTotpEntry = z.output<typeof NewTotpEntry>

export const CodeFilter = z.strictObject({
  min_remaining: Count(0, 119, 0).meta({
    description:
      'seconds for which the code must still be valid, below the period; with fewer left the response waits for the next code',
  }),
})
export type CodeFilter = z.output<typeof CodeFilter>

export const TotpCode = z
  .object({
    code: z.string().meta({ description: 'digits; a string, because it may start with 0' }),
    remaining_seconds: z.int().meta({ description: 'seconds until the next code, rounded up' }),
    period: z.int(),
    expires_at: Timestamp,
  })
  .meta({ id: 'TotpCode' })
export type TotpCode = z.output<typeof TotpCode>

/** The event of a code that was read: by whom, of which entry, and from where; without the code. */
const TotpRead = z.object({
  id: Id('totp'),
  identity_id: Id('ident'),
  service_name: z.string(),
  key_id: Id('key').nullable(),
  ip: z.string(),
  user_agent: z.string(),
})

export const totpCreated = eventType('totp.created', ['identities:read'], 'A one-time password was created.', TotpEntry)
export const totpDeleted = eventType('totp.deleted', ['identities:read'], 'A one-time password was deleted.', TotpEntry)
export const totpRead = eventType(
  'totp.read',
  ['identities:read'],
  'A code was read. Contains the reader and its address.',
  TotpRead,
)
