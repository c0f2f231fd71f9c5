import type { Words as IndexedWords } from '../../store/copy/side.ts'
import { empty, type Engine, sql, type Sql, type Transaction } from '../../store/database.ts'
import { queryOf, type Term, vectorOf } from './text-vectors.ts'

/** The words of one e-mail, as they are searched. */
interface Words {
  identity_id: string
  sender: string
  subject: string
  body: string
}

interface Wanted {
  identity_id: string
  wanted: readonly Term[]
  unwanted: readonly Term[]
}

/** What is selected of the e-mails that match, newest first: those with a lower `seq` than `before`. */
interface Selection {
  columns: Sql
  where: Sql
  before: number | undefined
  limit: number
  offset: number
}

/** Adds the words of an e-mail to the index. */
export async function insertWords(tx: Transaction, seq: number, words: Words): Promise<void> {
  const { owner, sender, subject, body } = indexedWords(words)
  await tx.run(
    tx.engine === 'sqlite'
      ? sql`INSERT INTO emails_search (rowid, owner, sender, subject, body) VALUES (${seq}, ${owner}, ${sender}, ${subject}, ${body})`
      : sql`INSERT INTO emails_search (rowid, words) VALUES (${seq}, CAST(${vectorOf(owner, { sender, subject, body })} AS tsvector))`,
  )
}

/** The words as they are put into the index. */
export function indexedWords({ identity_id, sender, subject, body }: Words): IndexedWords {
  return { owner: ownerToken(identity_id), sender: indexable(sender), subject: indexable(subject), body: indexable(body) }
}

export async function deleteWords(tx: Transaction, seq: number): Promise<void> {
  await tx.run(sql`DELETE FROM emails_search WHERE rowid = ${seq}`)
}

/** A condition of e-mails in the trash: their words are not in the index. */
export const hasNoWords = sql`NOT EXISTS (SELECT 1 FROM emails_search WHERE rowid = emails_trash.seq)`

/** The query of the e-mails of one identity that contain all of the wanted terms and none of the others. */
export function matching(engine: Engine, terms: Wanted, { columns, where, before, limit, offset }: Selection): Sql {
  const rest = before === undefined ? empty : sql` AND emails_search.rowid < ${before}`
  const joined = engine === 'sqlite' ? sql`CROSS JOIN` : sql`JOIN`
  const matches = engine === 'sqlite' ? sql`emails_search MATCH ${matchText(terms)}` : matchesVector(terms)
  return sql`SELECT ${columns} FROM emails_search ${joined} emails ON emails.seq = emails_search.rowid
    WHERE ${matches}${rest} AND ${where} ORDER BY emails_search.rowid DESC LIMIT ${limit} OFFSET ${offset}`
}

/** The text to index. CJK characters are separated, so that any run of them can be found as a phrase. */
function indexable(text: string): string {
  return cjk.test(text) ? text.replace(everyCjk, ' $& ') : text
}

const cjk = /[\u2E80-\u9FFF\uAC00-\uD7AF\uF900-\uFAFF\uFF66-\uFF9F\u{20000}-\u{3FFFF}]/u
const everyCjk = new RegExp(cjk.source, 'gu')

/** The token under which one identity's mail is indexed. */
function ownerToken(identityId: string): string {
  return identityId.slice(identityId.indexOf('_') + 1)
}

function matchText({ identity_id, wanted, unwanted }: Wanted): string {
  const owner = `owner : "${ownerToken(identity_id)}"`
  const all = [owner, ...wanted.map(matchTerm)].join(' AND ')
  return [`(${all})`, ...unwanted.map(matchTerm)].join(' NOT ')
}

function matchesVector({ identity_id, wanted, unwanted }: Wanted): Sql {
  const [all, none] = [wanted, unwanted].map((terms) => terms.map((term) => ({ ...term, text: indexable(term.text) })))
  const query = queryOf(ownerToken(identity_id), all!, none!)
  return query === undefined ? sql`1 = 0` : sql`words @@ CAST(${query} AS tsquery)`
}

/** The term as an FTS5 string: inside the quotes nothing is an operator. */
function matchTerm({ column, text, prefix }: Term): string {
  const quoted = `"${indexable(text).replaceAll('"', ' ').replaceAll('\0', ' ')}"${prefix ? ' *' : ''}`
  return `${column ? column : '{sender subject body}'} : ${quoted}`
}
