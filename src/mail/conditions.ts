import { join, sql } from '../store/database.ts'
import type { Sql } from '../store/database.ts'
import type { EmailFilter } from './queries.ts'

/** Whether an index leads to the rows. */
export function isQuick(filter: EmailFilter): boolean {
  const { from, to, subject, label, has_attachments, offset } = filter
  return [from, to, subject, label, has_attachments].every((one) => one === undefined) && offset < 1000
}

/** The conditions of a list. */
export function conditions(filter: EmailFilter): Sql {
  const list = [sql`1 = 1`, ...common(filter)]
  // in the trash one looks for what is not where it was
  const usual = filter.trash ? {} : { direction: 'inbound' as const, spam: false, duplicates: false }
  const { direction = 'all', spam, duplicates = true } = { ...usual, ...given(filter) }
  if (direction !== 'all') list.push(sql`direction = ${direction}`)
  if (filter.thread_id !== undefined) list.push(sql`thread_id = ${filter.thread_id}`)
  if (filter.label !== undefined) {
    // a quote inside a label is escaped, so what opens one follows the bracket or a comma only
    const label = JSON.stringify(filter.label)
    list.push(sql`(instr(labels, ${`[${label}`}) = 1 OR instr(labels, ${`,${label}`}) > 0)`)
  }
  if (filter.subject !== undefined) list.push(sql`instr(lower(subject), lower(${filter.subject})) > 0`)
  if (filter.has_attachments !== undefined) list.push(sql`has_attachments = ${filter.has_attachments ? 1 : 0}`)
  if (!duplicates) list.push(sql`duplicate_of IS NULL`)
  if (spam !== undefined) list.push(sql`spam = ${spam ? 1 : 0}`)
  return join(list, ' AND ')
}

/** What of these was asked for. */
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
    // lowered by the same hand on both sides, for engines differ in what they lower
    list.push(sql`(instr(lower(from_address), lower(${filter.from})) > 0 OR instr(lower(from_name), lower(${filter.from})) > 0)`)
  }
  if (filter.to !== undefined) list.push(sql`instr(lower(to_text), lower(${filter.to})) > 0`)
  if (filter.after !== undefined) list.push(sql`received_at > ${filter.after}`)
  if (filter.before !== undefined) list.push(sql`received_at < ${filter.before}`)
  return list
}
