import * as z from 'zod'
import { Count, Flag, Id, Paging, TimestampInput } from '../core/shapes.ts'
import { EmailChange, Label, maxBulk } from './model.ts'
import { sql, type Sql } from '../store/database.ts'
import type { Rows } from '../store/rows.ts'

const shapes = {
  unread: Flag.optional(),
  from: z.string().min(1).max(320).optional().meta({ description: 'part of the sender’s address or name' }),
  to: z.string().min(1).max(320).optional().meta({ description: 'part of a recipient address' }),
  after: TimestampInput.optional().meta({ description: 'received after this time' }),
  before: TimestampInput.optional().meta({ description: 'received before this time' }),
}

const Direction = z.enum(['inbound', 'outbound', 'all'])

/** What rows have besides. */
const Include = z.enum(['body']).optional().meta({
  description: 'body: rows with body_text, body_html and text; a page then has as many as fit into about 1 MiB',
})

/** The query parameters of a list of e-mails. */
export const EmailFilter = z.strictObject({
  ...Paging.shape,
  ...shapes,
  include: Include,
  direction: Direction.optional().meta({ description: 'default inbound; in the trash both' }),
  thread_id: Id('thread').optional(),
  label: Label.optional(),
  subject: z.string().min(1).max(998).optional().meta({ description: 'part of the subject' }),
  has_attachments: Flag.optional(),
  spam: Flag.optional().meta({ description: 'default false; in the trash both' }),
  duplicates: Flag.optional().meta({
    description: 'also list duplicates of earlier messages: false by default, in the trash true',
  }),
  trash: Flag.default(false).meta({ description: 'list deleted messages that can be restored, instead of the others' }),
})
export type EmailFilter = z.output<typeof EmailFilter>

const words = z.string().trim().min(1).max(1000)

const searchShapes = {
  ...shapes,
  direction: Direction.optional().meta({ description: 'default inbound, as in the list' }),
  query: words.optional().meta({ description: 'words, "phrases", prefix*, -not, from:, subject:, has:attachment' }),
  q: words.optional().meta({ description: 'the same as query' }),
}

/** The query parameters of a search. */
export const EmailSearch = z.strictObject({ ...Paging.shape, ...searchShapes, include: Include })
export type EmailSearch = z.output<typeof EmailSearch>

/** What a search looks for. */
export type SearchTerms = Omit<EmailSearch, keyof Paging | 'include'>

/** The body of a bulk change. */
export const BulkChange = z
  .strictObject({
    ids: z.array(z.string().min(1).max(100)).min(1).max(maxBulk).optional().meta({
      description: 'the e-mails to change; not together with search',
    }),
    search: z
      .strictObject({ ...searchShapes, unread: z.boolean().optional() })
      .optional()
      .meta({ description: 'changes what GET …/emails/search finds with these, newest first; needs a scope to read too' }),
    limit: z.int().min(1).max(maxBulk).default(100).meta({ description: 'the most e-mails that a search changes in this call' }),
    cursor: Paging.shape.cursor.meta({ description: 'the next_cursor of the call before, with the same search' }),
    ...EmailChange.omit({ send_at: true }).shape,
    delete: z.boolean().default(false).meta({ description: 'moves them to the trash' }),
    purge: z.boolean().default(false).meta({ description: 'deletes them permanently; ids may be in the trash' }),
  })
  .meta({ id: 'BulkChange' })
export type BulkChange = z.output<typeof BulkChange>

/** The paging of the messages of a thread. */
export const ThreadPaging = z.strictObject({
  limit: Count(1, 1000, 1000),
  cursor: Paging.shape.cursor,
})
export type ThreadPaging = z.output<typeof ThreadPaging>

// not as parameters: SQLite prepares a statement again for each value of a parameter that could satisfy the condition of a partial index
const directions = { inbound: sql`direction = 'inbound'`, outbound: sql`direction = 'outbound'` }

export function ofDirection(direction: z.output<typeof Direction>): Sql[] {
  return direction === 'all' ? [] : [directions[direction]]
}

/** The SQL conditions of a list of e-mails. */
export function selection(identityId: string, filter: EmailFilter): Pick<Rows, 'from' | 'where' | 'filters' | 'costly'> {
  const { trash, thread_id, unread, from, to, subject, label, has_attachments } = filter
  const own = sql`identity_id = ${identityId}`
  const filters: Sql[] = []
  const costly = [from, to, subject, label].some((one) => one !== undefined)
  const listed = { from: trash ? sql`emails_trash AS emails` : sql`emails`, filters, costly }
  // in the trash everything is listed by default
  const defaults = trash ? {} : { direction: 'inbound' as const, spam: false, duplicates: false }
  const { direction = 'all', spam, duplicates = true } = { ...defaults, ...given(filter) }
  filters.push(...ofDirection(direction))
  if (spam !== undefined) filters.push(spam ? sql`spam = 1` : sql`spam = 0`)
  if (has_attachments !== undefined) filters.push(has_attachments ? sql`has_attachments = 1` : sql`has_attachments = 0`)
  if (!duplicates) filters.push(sql`duplicate_of IS NULL`)
  if (label !== undefined) {
    // quotes inside a label are escaped, so an opening quote only follows the bracket or a comma
    const text = JSON.stringify(label)
    filters.push(sql`(instr(labels, ${`[${text}`}) = 1 OR instr(labels, ${`,${text}`}) > 0)`)
  }
  if (subject !== undefined) filters.push(sql`instr(lower(subject), lower(${subject})) > 0`)
  if (thread_id !== undefined && !trash) {
    // an expression, so that only the index of threads is used
    filters.push(sql`identity_id || '' = ${identityId}`, ...common(filter))
    return { ...listed, where: sql`thread_id = ${thread_id}` }
  }
  if (thread_id !== undefined) filters.push(sql`thread_id = ${thread_id}`)
  if (unread !== true || trash) {
    filters.push(...common(filter))
    return { ...listed, where: own }
  }
  filters.push(...common({ ...filter, unread: undefined }))
  return { ...listed, where: sql`${own} AND read = 0` }
}

/** The parameters that were given. */
function given({ direction, spam, duplicates }: EmailFilter): Pick<EmailFilter, 'direction' | 'spam' | 'duplicates'> {
  return {
    ...(direction === undefined ? {} : { direction }),
    ...(spam === undefined ? {} : { spam }),
    ...(duplicates === undefined ? {} : { duplicates }),
  }
}

/** The conditions that lists and searches share. */
export function common(filter: {
  unread?: boolean | undefined
  from?: string | undefined
  to?: string | undefined
  after?: string | undefined
  before?: string | undefined
}): Sql[] {
  const list: Sql[] = []
  if (filter.unread !== undefined) list.push(filter.unread ? sql`read = 0` : sql`read = 1`)
  if (filter.from !== undefined) {
    // both sides are lower-cased by SQLite, as JavaScript lower-cases other characters
    list.push(sql`(instr(lower(from_address), lower(${filter.from})) > 0 OR instr(lower(from_name), lower(${filter.from})) > 0)`)
  }
  if (filter.to !== undefined) list.push(sql`instr(lower(to_text), lower(${filter.to})) > 0`)
  if (filter.after !== undefined) list.push(sql`received_at > ${filter.after}`)
  if (filter.before !== undefined) list.push(sql`received_at < ${filter.before}`)
  return list
}
