import { FairTurns } from '../../core/work/fair-turns.ts'
import { Fault, notFound } from '../../core/fault.ts'
import { lruMapOfBytes } from '../../core/memory.ts'
import type { Caller } from '../../core/scopes.ts'
import { tooLargeForText } from '../../message/documents/collected-text.ts'
import type { DocumentText } from '../../message/documents/document.ts'
import { WorkLimiter, type WorkLimits } from '../../net/work-limiter.ts'
import { readIndex } from '../attachments.ts'
import { type Emails, requireRaw } from '../emails.ts'
import type { Attachment, AttachmentText, TextSlice } from '../model.ts'
import type { AttachmentReader, Reading } from '../workers/attachment-reader.ts'
import type { DocumentReader } from './document-reader.ts'

const mebibyte = 1024 * 1024

/** Bytes that a smaller attachment counts as, too. */
const leastCount = 8 * mebibyte

/** The largest attachment of which text is read, in bytes. */
const maxBytes = 32 * mebibyte

/** Those that wait are not in memory: they count so that at most eight of an account do, which fits into the timeout of a call. */
const limits = {
  memory: {
    all: 256 * mebibyte,
    one: 8 * leastCount,
    own: leastCount,
    message: 'Too many attachments are being read as text at once. Retry when other requests have finished.',
  },
  concurrent: { all: Infinity, one: Infinity },
} satisfies WorkLimits

/** Milliseconds of one document while another account waits that had less. */
const slice = 1000

/**
 * Bytes of texts that are kept so that the next pieces are not read from the file again, and for how many milliseconds. Refusals are kept too: a file
 * that takes seconds to fail does so once.
 */
const kept = { bytes: 16 * mebibyte, lifetime: 5 * 60_000 }

interface Place {
  identityId: string
  emailId: string
  index: string
}

/** The texts of attachments: PDF, DOCX, XLSX, HTML, CSV and plain text. */
export class AttachmentTexts {
  readonly #emails: Emails
  readonly #reader: AttachmentReader
  readonly #documents: DocumentReader
  readonly #limiter = new WorkLimiter(limits)
  /** One document is read at a time. */
  readonly #turns = new FairTurns(slice)
  readonly #kept = lruMapOfBytes<DocumentText | Fault>(kept.bytes, sizeOf, kept.lifetime)

  constructor(deps: { emails: Emails; reader: AttachmentReader; documents: DocumentReader }) {
    this.#emails = deps.emails
    this.#reader = deps.reader
    this.#documents = deps.documents
  }

  /** A piece of the text. Throws Fault invalid_request for an attachment without text, rate_limited `too_much_at_once` when too many are waiting. */
  async read(
    caller: Caller,
    { identityId, emailId, index }: Place,
    { offset, limit }: TextSlice,
    signal: AbortSignal,
  ): Promise<AttachmentText> {
    const row = await this.#emails.row(caller, identityId, emailId)
    const record = (await this.#emails.attachmentsOf(row))[readIndex(index, 'an attachment')]
    if (!record) throw notFound('attachment')
    requireRaw(row)
    const found = await this.#document({ row, account: caller.account_id, signal }, emailId, record)
    if (found instanceof Fault) throw withDownload(found, { identityId, emailId, index })
    const { text, format, pages, truncated } = found
    const end = pieceEnd(text, offset, limit)
    return {
      index: record.index,
      filename: record.filename,
      format,
      text: text.slice(offset, end).toWellFormed(),
      offset,
      next_offset: end < text.length ? end : null,
      characters: text.length,
      pages,
      truncated,
    }
  }

  /** The text of an attachment, or why it has none. */
  async #document(reading: Reading, emailId: string, record: Attachment): Promise<DocumentText | Fault> {
    const key = `${emailId}/${record.index}`
    const known = this.#kept.get(key)
    if (known) return known
    if (record.size > maxBytes) return tooLargeForText(`it has more than ${maxBytes / mebibyte} MiB`)
    const share = this.#limiter.share(reading.account)
    try {
      share.reserve(Math.max(record.size, leastCount))
      // another call may have read it meanwhile
      const { account, signal } = reading
      const read = async (stopped: AbortSignal): Promise<DocumentText | Fault> =>
        this.#kept.get(key) ?? this.#readAnew({ ...reading, signal: AbortSignal.any([signal, stopped]) }, key, record)
      return await this.#turns.run(account, read, signal)
    } finally {
      share.release()
    }
  }

  async #readAnew(reading: Reading, key: string, record: Attachment): Promise<DocumentText | Fault> {
    const found = await this.#reader.read(reading, (decode) => decode([record.index]))
    const file = found.get(record.index)
    if (!file) throw notFound('attachment')
    const { filename, content_type } = record
    const document = await this.#documents
      .read(file.content, { filename, content_type, charset: file.charset }, reading.signal)
      .catch((error: unknown) => {
        if (error instanceof Fault && error.type === 'invalid_request') return error
        throw error
      })
    this.#kept.set(key, document)
    return document
  }
}

/** The end of a piece, which is one character longer rather than end within a pair of surrogates. */
function pieceEnd(text: string, offset: number, limit: number): number {
  const end = offset + limit
  return end < text.length && text.codePointAt(end - 1)! > 0xffff ? end + 1 : end
}

function withDownload({ type, message, code }: Fault, { identityId, emailId, index }: Place): Fault {
  const download = `GET /v1/identities/${identityId}/emails/${emailId}/attachments/${index} answers a URL to download it.`
  return new Fault(type, `${message} ${download}`, code === undefined ? {} : { code })
}

function sizeOf(found: DocumentText | Fault): number {
  return 1024 + (found instanceof Fault ? 0 : 2 * found.text.length)
}
