import type { Basis } from '../../basis.ts'
import { fitting, rowsAt } from '../../store/page.ts'
import { trimEnd } from '../../core/text.ts'
import { invalid } from '../../core/fault.ts'
import type { Caller } from '../../core/scopes.ts'
import { type Page, wordsOf } from '../../core/shapes.ts'
import type { Identities } from '../../identities/identities.ts'
import { empty, join, sql, type Sql } from '../../store/database.ts'
import { common, type EmailSearch, ofDirection, type SearchTerms } from '../queries.ts'
import { matching } from './full-text.ts'
import type { Term } from './text-vectors.ts'
import { bodiedEmailSize, emailRow, listedEmailSize, rowColumns, type StoredEmail } from '../email-rows.ts'
import type { EmailRow } from '../model.ts'

/** Timeout of a search, in milliseconds. */
const deadline = 2000

const maxTerms = 16

interface Deps extends Pick<Basis, 'database' | 'cursors'> {
  identities: Identities
  /** List entries with their bodies, by position. */
  withBodies: (caller: Caller, seqs: readonly number[]) => Promise<EmailRow[]>
}

/** Full-text search in one mailbox, newest first. */
export async function searchEmails(deps: Deps, caller: Caller, identityId: string, input: EmailSearch): Promise<Page<EmailRow>> {
  await deps.identities.row(caller, identityId)
  const { limit, cursor, offset, include, ...terms } = input
  const octets = include === 'body' ? bodiedEmailSize : listedEmailSize
  const { found, ...rest } = await findEmails(deps, caller, identityId, terms, { limit, cursor, offset, octets })
  const seqs = found.map(({ seq }) => seq)
  if (include === 'body') return { data: await deps.withBodies(caller, seqs), ...rest }
  const rows = await rowsAt<StoredEmail>(deps.database, { columns: rowColumns, from: sql`emails` }, seqs)
  return { data: rows.map(emailRow), ...rest }
}

/** Where the e-mails are that a search finds: as many as fit into one answer. The caller has checked the identity. */
export async function findEmails(
  { database, cursors }: Pick<Deps, 'database' | 'cursors'>,
  caller: Caller,
  identityId: string,
  wanted: SearchTerms,
  paging: Pick<EmailSearch, 'limit' | 'cursor' | 'offset'> & { octets?: Sql },
): Promise<{ found: Pick<Head, 'seq' | 'id'>[]; has_more: boolean; next_cursor: string | null }> {
  const { query: _query, q: _q, direction = 'inbound', ...filters } = wanted
  const query = wordsOf(wanted)
  if ([query, ...Object.values(filters)].every((value) => value === undefined)) {
    throw invalid('query', 'Send at least one of query, from, to, after, before and unread.')
  }
  const { limit, offset, octets = listedEmailSize } = paging
  const name = `search ${identityId} ${JSON.stringify({ query, direction, ...filters })}`
  const position = cursors.start(name, paging)
  const terms = query === undefined ? undefined : parseQuery(query)
  const where = [sql`identity_id = ${identityId}`, sql`duplicate_of IS NULL`, sql`spam = 0`, ...ofDirection(direction)]
  where.push(...common(filters))
  if (terms?.attachment) where.push(sql`has_attachments = 1`)
  const columns = sql`emails.seq, emails.id, ${octets} AS octets`
  const selection = { columns, where: join(where, ' AND '), before: position, limit: limit + 1, offset }
  const heads = await database.slow<Head>(
    terms ? matching(database.engine, { identity_id: identityId, ...terms }, selection) : newest(selection),
    deadline,
    caller.account_id,
  )
  const count = fitting(
    heads.map((head) => head.octets),
    limit,
  )
  const found = heads.slice(0, count)
  const has_more = heads.length > count
  return { found, has_more, next_cursor: has_more ? cursors.write(name, found.at(-1)!.seq) : null }
}

/** Positions and sizes: the rows may be too large to be read together. */
interface Head {
  seq: number
  id: string
  octets: number
}

function newest({ columns, where, before, limit, offset }: Parameters<typeof matching>[2]): Sql {
  const rest = before === undefined ? empty : sql` AND seq < ${before}`
  return sql`SELECT ${columns} FROM emails WHERE ${where}${rest} ORDER BY seq DESC LIMIT ${limit} OFFSET ${offset}`
}

interface Terms {
  wanted: Term[]
  unwanted: Term[]
  attachment: boolean
}

/** Parses words, "phrases", prefix*, -not, from:, subject: and has:attachment; anything else counts as words. */
function parseQuery(query: string): Terms {
  const terms: Terms = { wanted: [], unwanted: [], attachment: false }
  const pattern = /(-)?(?:(from|subject|has):)?(?:"([^"]*)"?|([^\s"]+))/giu
  for (const [, not, field, phrase, word] of query.matchAll(pattern)) {
    const text = phrase ?? word ?? ''
    if (field?.toLowerCase() === 'has' && text.toLowerCase().startsWith('attachment')) {
      terms.attachment = true
      continue
    }
    const column = field?.toLowerCase() === 'from' ? 'sender' : field?.toLowerCase() === 'subject' ? 'subject' : undefined
    // text without letters or digits has no token and would match nothing
    if (!/[\p{L}\p{N}]/u.test(text)) continue
    const term: Term = { column, text: trimEnd(text, '*'), prefix: phrase === undefined && text.endsWith('*') }
    ;(not ? terms.unwanted : terms.wanted).push(term)
    if (terms.wanted.length + terms.unwanted.length > maxTerms)
      throw invalid('query', `query can have at most ${maxTerms} terms.`)
  }
  if (terms.wanted.length === 0 && terms.unwanted.length === 0 && !terms.attachment) {
    throw invalid('query', 'query contains no word to search for.')
  }
  return terms
}
