import * as z from 'zod'
import { Count, Flag, Id, Paging, TimestampInput } from '../core/shapes.ts'
import { Label } from './model.ts'

const filters = {
  unread: Flag.optional(),
  from: z.string().min(1).max(320).optional().meta({ description: 'part of the sender’s address or name' }),
  to: z.string().min(1).max(320).optional().meta({ description: 'part of the address it arrived at, or of those it went to' }),
  after: TimestampInput.optional().meta({ description: 'received after this time' }),
  before: TimestampInput.optional().meta({ description: 'received before this time' }),
}

/** Which e-mails a list shows. */
export const EmailFilter = z.strictObject({
  ...Paging.shape,
  ...filters,
  direction: z.enum(['inbound', 'outbound', 'all']).optional().meta({ description: 'inbound when left out; in the trash all' }),
  thread_id: Id('thread').optional(),
  label: Label.optional(),
  subject: z.string().min(1).max(998).optional().meta({ description: 'part of the subject' }),
  has_attachments: Flag.optional(),
  spam: Flag.optional().meta({ description: 'false when left out; in the trash both' }),
  duplicates: Flag.optional().meta({
    description: 'also show repeats of a message that came before: false when left out, in the trash true',
  }),
  trash: Flag.default(false).meta({ description: 'what was deleted and can be restored, in place of the others' }),
})
export type EmailFilter = z.output<typeof EmailFilter>

/** Which e-mails a search finds. */
export const EmailSearch = z.strictObject({
  ...Paging.shape,
  ...filters,
  query: z
    .string()
    .trim()
    .min(1)
    .max(1000)
    .optional()
    .meta({ description: 'words, "phrases", prefix*, -not, from:, subject:, has:attachment' }),
})
export type EmailSearch = z.output<typeof EmailSearch>

/** Which messages of a thread are answered. */
export const ThreadPaging = z.strictObject({
  limit: Count(1, 1000, 1000),
  cursor: Paging.shape.cursor,
})
export type ThreadPaging = z.output<typeof ThreadPaging>
