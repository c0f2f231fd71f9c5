import type { Cursors } from '../core/cursor.ts'
import { invalid, notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Paging, SignedQuery } from '../core/shapes.ts'
import type { Download } from '../http/route.ts'
import type { EmailDetail } from './email-rows.ts'
import { requireRaw } from './emails.ts'
import type { Emails } from './emails.ts'
import type { Examiner } from './examiner.ts'
import type { Attachment, AttachmentWithUrl } from './model.ts'
import type { SignedUrls } from './signed-urls.ts'

/** Types that a browser may be told of; everything else is served as octets. Nothing is ever shown inline. */
const harmless =
  /^(?:image\/(?:png|jpeg|gif|webp)|application\/(?:pdf|zip|json)|text\/(?:plain|csv|calendar)|audio\/[\w.+-]+|video\/[\w.+-]+)$/

/** The attachments of kept messages, read from their octets when they are asked for. */
export class Attachments {
  readonly #emails: Emails
  readonly #examiner: Examiner
  readonly #urls: SignedUrls
  readonly #cursors: Cursors

  constructor(parts: { emails: Emails; examiner: Examiner; urls: SignedUrls; cursors: Cursors }) {
    this.#emails = parts.emails
    this.#examiner = parts.examiner
    this.#urls = parts.urls
    this.#cursors = parts.cursors
  }

  async list(
    caller: Caller,
    identityId: string,
    emailId: string,
    { limit, cursor, offset }: Paging,
  ): Promise<{ data: Attachment[]; has_more: boolean; next_cursor: string | null }> {
    const row = await this.#emails.row(caller, identityId, emailId)
    if (cursor !== undefined && offset > 0) throw invalid('offset', 'Give either cursor or offset, not both.')
    const name = `attachments ${emailId}`
    const start = cursor === undefined ? offset : this.#cursors.read(name, cursor)
    const all = recordsOf(row.detail)
    const end = start + limit
    const has_more = end < all.length
    return { data: all.slice(start, end), has_more, next_cursor: has_more ? this.#cursors.write(name, end) : null }
  }

  async get(caller: Caller, identityId: string, emailId: string, index: string): Promise<AttachmentWithUrl> {
    const row = await this.#emails.row(caller, identityId, emailId)
    const record = recordsOf(row.detail)[position(index)]
    if (!record) throw notFound('attachment')
    requireRaw(row)
    return { ...record, ...this.#urls.sign(caller, emailId, record.index) }
  }

  /** What a signed URL opens. */
  async open(emailId: string, index: string, query: SignedQuery): Promise<Download> {
    await this.#urls.verify(emailId, position(index), query)
    const row = await this.#emails.signedRow(emailId)
    const record = recordsOf(row.detail)[position(index)]
    if (!record) throw notFound('attachment')
    const found = await this.#examiner.attachment(await this.#emails.octets(row), record.index, row.account_id)
    if (!found) throw notFound('attachment')
    return {
      type: harmless.test(record.content_type) ? record.content_type : 'application/octet-stream',
      bytes: found.content,
      headers: { 'Content-Disposition': disposition(record.filename) },
    }
  }
}

function recordsOf(detail: string): Attachment[] {
  return (JSON.parse(detail) as EmailDetail).attachments
}

function position(index: string): number {
  if (!/^\d{1,4}$/.test(index)) throw invalid('index', 'index must be the number of an attachment, from 0.', 'bad_id')
  return Number(index)
}

/** RFC 6266 with the ASCII fall-back; names were cleaned when the message was read. */
function disposition(filename: string): string {
  const ascii = filename.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encodeURIComponent(filename).replace(/['()*]/g, escapeCharacter)}`
}

function escapeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
