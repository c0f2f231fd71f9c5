import { empty, sql, type Sql, type Transaction } from '../../store/database.ts'

/** The words of one e-mail, as they are searched. */
interface Words {
  identity_id: string
  sender: string
  subject: string
  body: string
}

/** A word, a phrase or the beginning of a word, in one of the texts or in any. */
export interface Term {
  column: 'sender' | 'subject' | undefined
  text: string
  prefix: boolean
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
export async function insertWords(tx: Transaction, seq: number, { identity_id, sender, subject, body }: Words): Promise<void> {
  await tx.run(
    sql`INSERT INTO emails_search (rowid, owner, sender, subject, body) VALUES (${seq}, ${ownerToken(identity_id)},
      ${indexable(sender)}, ${indexable(subject)}, ${indexable(body)})`,
  )
}

export async function deleteWords(tx: Transaction, seq: number): Promise<void> {
  await tx.run(sql`DELETE FROM emails_search WHERE rowid = ${seq}`)
}

/** A condition of e-mails in the trash: their words are not in the index. */
export const hasNoWords = sql`NOT EXISTS (SELECT 1 FROM emails_search WHERE rowid = emails_trash.seq)`

/** The query of the e-mails of one identity that contain all of the wanted terms and none of the others. */
export function matching(terms: Wanted, { columns, where, before, limit, offset }: Selection): Sql {
  const rest = before === undefined ? empty : sql` AND emails_search.rowid < ${before}`
  return sql`SELECT ${columns} FROM emails_search CROSS JOIN emails ON emails.seq = emails_search.rowid
    WHERE emails_search MATCH ${matchText(terms)}${rest} AND ${where} ORDER BY emails_search.rowid DESC LIMIT ${limit} OFFSET ${offset}`
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

/** The term as an FTS5 string: inside the quotes nothing is an operator. */
function matchTerm({ column, text, prefix }: Term): string {
  const quoted = `"${indexable(text).replaceAll('"', ' ').replaceAll('\0', ' ')}"${prefix ? ' *' : ''}`
  return `${column ? column : '{sender subject body}'} : ${quoted}`
}
