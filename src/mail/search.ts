import type { Basis } from '../basis.ts'
import { fitting, rowsAt } from '../store/page.ts'
import { trimEnd } from '../core/text.ts'
import { invalid } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { type Page, wordsOf } from '../core/shapes.ts'
import type { Identities } from '../identities/identities.ts'
import { type Database, join, sql, type Sql } from '../store/database.ts'
import { common, type EmailSearch, ofDirection, type SearchTerms } from './queries.ts'
import { bodiedEmailSize, emailRow, listedEmailSize, rowColumns, type StoredEmail } from './email-rows.ts'
import type { EmailRow } from './model.ts'

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
  const text = terms && matchText(identityId, terms)
  const heads = await headsOf(database, caller, { text, where, octets }, position, limit + 1, offset)
  const count = fitting(
    heads.map((head) => head.octets),
    limit,
  )
  const found = heads.slice(0, count)
  const has_more = heads.length > count
  return { found, has_more, next_cursor: has_more ? cursors.write(name, found.at(-1)!.seq) : null }
}

/** Positions and sizes: the rows may be too large to be read together. */
function headsOf(
  database: Database,
  { account_id }: Caller,
  { text, where, octets }: { text: string | undefined; where: Sql[]; octets: Sql },
  position: number | undefined,
  limit: number,
  offset: number,
): Promise<Head[]> {
  const rest = join(where, ' AND ')
  if (text === undefined) {
    const after = position === undefined ? sql`` : sql` AND seq < ${position}`
    return database.slow<Head>(
      sql`SELECT emails.seq, emails.id, ${octets} AS octets FROM emails WHERE ${rest}${after} ORDER BY seq DESC LIMIT ${limit} OFFSET ${offset}`,
      deadline,
      account_id,
    )
  }
  const after = position === undefined ? sql`` : sql` AND emails_search.rowid < ${position}`
  return database.slow<Head>(
    sql`SELECT emails.seq, emails.id, ${octets} AS octets FROM emails_search CROSS JOIN emails ON emails.seq = emails_search.rowid WHERE emails_search MATCH ${text}${after}
      AND ${rest} ORDER BY emails_search.rowid DESC LIMIT ${limit} OFFSET ${offset}`,
    deadline,
    account_id,
  )
}

interface Head {
  seq: number
  id: string
  octets: number
}

/** The text to index. CJK characters are separated, so that any run of them can be found as a phrase. */
export function indexable(text: string): string {
  return cjk.test(text) ? text.replace(everyCjk, ' $& ') : text
}

const cjk = /[\u2E80-\u9FFF\uAC00-\uD7AF\uF900-\uFAFF\uFF66-\uFF9F\u{20000}-\u{3FFFF}]/u
const everyCjk = new RegExp(cjk.source, 'gu')

/** The token under which one identity's mail is indexed. */
export function ownerToken(identityId: string): string {
  return identityId.slice(identityId.indexOf('_') + 1)
}

interface Term {
  column: 'sender' | 'subject' | undefined
  text: string
  prefix: boolean
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

function matchText(identityId: string, terms: Terms): string {
  const owner = `owner : "${ownerToken(identityId)}"`
  const wanted = [owner, ...terms.wanted.map(matchTerm)].join(' AND ')
  return [`(${wanted})`, ...terms.unwanted.map(matchTerm)].join(' NOT ')
}

/** The term as an FTS5 string: inside the quotes nothing is an operator. */
function matchTerm({ column, text, prefix }: Term): string {
  const quoted = `"${indexable(text).replaceAll('"', ' ').replaceAll('\0', ' ')}"${prefix ? ' *' : ''}`
  return `${column ? column : '{sender subject body}'} : ${quoted}`
}
