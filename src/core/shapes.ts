import * as z from 'zod'
import { invalid } from './fault.ts'
import { type IdPrefix, isId } from './ids.ts'

/** ISO 8601 UTC with milliseconds. */
export const Timestamp = z.iso.datetime()

/** Any value of JSON; `z.json()` would be described anew wherever it is used. */
export const Json: z.ZodType<z.core.util.JSONType> = z
  .lazy(() => z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(Json), z.record(z.string(), Json)]))
  .meta({ id: 'Json', description: 'any JSON' })

// line breaks could end a header field, and bidirectional controls could disguise a name
const control = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

/** What shows as something: neither a space nor an invisible character. */
const visible = /[^\p{C}\p{Z}\p{M}\p{Default_Ignorable_Code_Point}]/u

/** Text on one line that can be seen and reads in its own order, of at most so many characters (not UTF-16 code units). */
export function Line(longest: number) {
  return z
    .string()
    .trim()
    .min(1, { error: 'must not be empty' })
    .refine((text) => text.length <= 2 * longest && Array.from(text).length <= longest, {
      error: `must have at most ${longest} characters`,
    })
    .refine((text) => text === '' || (!control.test(text) && visible.test(text)), { error: 'must be visible text on one line' })
    .meta({ maxLength: longest })
}

/** A point in time as callers may write it: with any offset, stored as UTC; a date alone is its midnight in UTC. */
export const TimestampInput = z
  .string()
  // a query turns the plus of an offset into a space, unless it was escaped
  .transform((text) => (/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text.replace(/ (?=\d{2}:\d{2}$)/, '+')))
  .pipe(z.iso.datetime({ offset: true, error: 'must be an ISO 8601 time such as 2026-11-20T10:05:00Z' }))
  // an offset can move a time out of the years of four digits, which could not be written nor compared as text
  .refine((text) => /^\d{4}-/.test(inUtc(text)), { error: 'must be in the years 0000 to 9999 in UTC' })
  .transform(inUtc)
  .meta({ override: { type: 'string', format: 'date-time' } })

/** A country, by its code (ISO 3166-1 alpha-2), in any case. */
export const Country = z
  .string()
  .toUpperCase()
  .regex(/^[A-Z]{2}$/, { error: 'must be a country code of two letters, such as US' })

/** An id with its type prefix. */
export function Id(prefix: IdPrefix) {
  return z
    .string()
    .refine((text) => isId(prefix, text), { error: `must be an id such as ${prefix}_01j…` })
    .meta({ pattern: `^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$` })
}

/** `true` or `false` in a query string; 1 and 0, and capitals, are understood too. */
export const Flag = z
  .string()
  .regex(/^(?:true|false|1|0)$/i, { error: 'must be true or false' })
  .transform((text) => /^(?:true|1)$/i.test(text))
  .meta({ override: { type: 'boolean' } })

/** A whole number in a query string, within bounds. */
export function Count(minimum: number, maximum: number, fallback: number) {
  const message = `must be a whole number from ${minimum} to ${maximum}`
  return z
    .string()
    .regex(/^\d{1,9}$/, { error: message })
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, { error: message })
    .default(fallback)
    .meta({ override: { type: 'integer', minimum, maximum, default: fallback } })
}

/** The words of a search, which have two names. Throws Fault invalid_request for both with different values. */
export function wordsOf({ query, q }: { query?: string | undefined; q?: string | undefined }): string | undefined {
  if (query !== undefined && q !== undefined && query !== q)
    throw invalid('q', 'query and q are the same; send only one of them.')
  return query ?? q
}

/** The query every list takes. `cursor` and `offset` exclude each other (checked by `page()`). */
export const Paging = z.strictObject({
  limit: Count(1, 200, 50),
  cursor: z.string().min(1).max(200).optional().meta({ description: 'the next_cursor of the page before' }),
  offset: Count(0, 1_000_000, 0).meta({ description: 'number of rows to skip; not together with cursor' }),
})
export type Paging = z.output<typeof Paging>

/** The response of every list. */
export function Page<Row extends z.ZodType>(row: Row) {
  return z.object({ data: z.array(row), has_more: z.boolean(), next_cursor: z.string().nullable() })
}

export type Page<Item> = { data: Item[]; has_more: boolean; next_cursor: string | null }

/** The fields of a row that a schema names, in its order. */
export function picked<Shape extends z.ZodRawShape, Row extends object>(
  { shape }: z.ZodObject<Shape>,
  row: Row,
): Pick<Row, keyof Shape & keyof Row> {
  const names = Object.keys(shape).filter((name) => name in row)
  return Object.fromEntries(names.map((name) => [name, row[name as keyof Row]])) as Pick<Row, keyof Shape & keyof Row>
}

/** The response of every deletion. */
export const Deleted = z.object({ id: z.string(), deleted: z.literal(true) }).meta({ id: 'Deleted' })

/** The query of deletions of resources that have a trash. */
export const Deletion = z.strictObject({
  purge: Flag.default(false).meta({ description: 'deletes permanently and immediately, also from the trash' }),
})

/** The query of a signed URL. */
export const SignedQuery = z.strictObject({
  expires: z
    .string()
    .regex(/^\d{1,12}$/, { error: 'must be the number of the signed URL' })
    .transform(Number)
    .meta({ override: { type: 'integer' }, description: 'time of expiry, in seconds since 1970' }),
  by: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .meta({ description: 'the key that requested it and the number of its secret, or the session; the URL ends with them' }),
  signature: z.string().min(1).max(100),
})
export type SignedQuery = z.output<typeof SignedQuery>

/** What its sender sees of a hold. */
export const HoldState = z
  .object({
    id: Id('hold'),
    status: z.enum(['open', 'approved', 'rejected', 'expired', 'cancelled']),
    expires_at: Timestamp.meta({ description: 'rejected then' }),
    decided_at: Timestamp.nullable(),
    reason: z.string().nullable().meta({ description: 'of the decision' }),
  })
  .meta({ id: 'HoldState' })
export type HoldState = z.output<typeof HoldState>

/** Empty for an invalid time. */
function inUtc(text: string): string {
  const time = new Date(text)
  return Number.isNaN(time.getTime()) ? '' : time.toISOString()
}
