import { type Cursors, pageOf } from '../store/page.ts'
import { badId, Fault, notFound } from '../core/fault.ts'
import { type Caller, makerOf } from '../core/scopes.ts'
import type { Page, Paging, SignedQuery } from '../core/shapes.ts'
import type { Download } from '../http/route.ts'
import type { AttachmentReader } from './workers/attachment-reader.ts'
import { type Emails, requireRaw } from './emails.ts'
import type { Attachment, AttachmentWithUrl } from './model.ts'
import { type AuditEntry, type AuditRecorder, byOperator } from '../core/audit.ts'
import type { Holders } from '../accounts/holders.ts'
import { type Clock, iso, minute } from '../core/clock.ts'
import { mac, sameBytes } from '../core/seal/seal.ts'

/** Types that are sent to browsers; everything else is served as application/octet-stream. Nothing is displayed inline. */
const servedTypes =
  /^(?:image\/(?:png|jpeg|gif|webp)|application\/(?:pdf|zip|json)|text\/(?:plain|csv|calendar)|audio\/[\w.+-]+|video\/[\w.+-]+)$/

/** The call of a signed URL. */
interface UrlCall {
  ip: string
  signal: AbortSignal
}

/** The attachments of stored messages, parsed from the raw message on request. */
export class Attachments {
  readonly #emails: Emails
  readonly #reader: AttachmentReader
  readonly #urls: SignedUrls
  readonly #cursors: Cursors

  constructor(deps: { emails: Emails; reader: AttachmentReader; urls: SignedUrls; cursors: Cursors }) {
    this.#emails = deps.emails
    this.#reader = deps.reader
    this.#urls = deps.urls
    this.#cursors = deps.cursors
  }

  async list(caller: Caller, identityId: string, emailId: string, paging: Paging): Promise<Page<Attachment>> {
    const row = await this.#emails.row(caller, identityId, emailId)
    return pageOf(this.#cursors, `attachments ${emailId}`, paging, await this.#emails.attachmentsOf(row))
  }

  async get(caller: Caller, identityId: string, emailId: string, index: string): Promise<AttachmentWithUrl> {
    const row = await this.#emails.row(caller, identityId, emailId)
    const record = (await this.#emails.attachmentsOf(row))[readIndex(index, 'an attachment')]
    if (!record) throw notFound('attachment')
    requireRaw(row)
    return { ...record, ...this.#urls.sign(caller, emailId, record.index) }
  }

  /** Downloads an attachment by its signed URL. Throws Fault 429 `too_much_at_once` when too many large messages of the account are being read. */
  async open(emailId: string, index: string, query: SignedQuery, { ip, signal }: UrlCall): Promise<Download> {
    const holder = await this.#urls.verify(emailId, readIndex(index, 'an attachment'), query)
    const row = await this.#emails.signedRow(emailId)
    const record = (await this.#emails.attachmentsOf(row))[readIndex(index, 'an attachment')]
    if (!record) throw notFound('attachment')
    const found = await this.#reader.read({ row, account: row.account_id, signal }, (decode) => decode([record.index]))
    const bytes = found.get(record.index)?.content
    if (!bytes) throw notFound('attachment')
    const { identity_id } = row
    this.#urls.record(holder, { address: ip, action: 'attachment.downloaded', target: emailId, identity_id })
    return {
      type: servedTypes.test(record.content_type) ? record.content_type : 'application/octet-stream',
      bytes,
      headers: { 'Content-Disposition': disposition(record.filename) },
    }
  }
}

/** The number of an attachment or file in a path. */
export function readIndex(index: string, what: string): number {
  if (!/^(?:0|[1-9]\d{0,3})$/.test(index)) throw badId('index', `must be the number of ${what}, from 0`)
  return Number(index)
}

/** Content-Disposition by RFC 6266 with an ASCII fallback. Names were sanitized when the message was parsed. */
function disposition(filename: string): string {
  const ascii = filename.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encodeURIComponent(filename).replace(/['()*]/g, escapeCharacter)}`
}

function escapeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

/** Default lifetime of a URL, in milliseconds. */
const defaultLifetime = 15 * minute

/** The key or session that requested a signed URL. */
type UrlHolder = Pick<AuditEntry, 'account_id' | 'actor' | 'client'>

/** Signed URLs of attachments and other files, which need no API key. Valid for 15 minutes, or as long as the file is stored. */
export class SignedUrls {
  readonly #key: Buffer
  readonly #clock: Clock
  readonly #publicUrl: () => string
  readonly #holders: Pick<Holders, 'holder'>
  readonly #audit: AuditRecorder
  /** The account of the operator. */
  readonly #account: string

  constructor(deps: {
    key: Buffer
    clock: Clock
    publicUrl: () => string
    holders: Pick<Holders, 'holder'>
    audit: AuditRecorder
    account: string
  }) {
    this.#audit = deps.audit
    this.#account = deps.account
    this.#key = deps.key
    this.#clock = deps.clock
    this.#publicUrl = deps.publicUrl
    this.#holders = deps.holders
  }

  /**
   * `place` is the path prefix, `until` the time in milliseconds at which the URL expires. It is valid only as long as the caller's key and its
   * secret, or the caller's session; that of the operator is limited by time alone.
   */
  sign(
    caller: Caller,
    emailId: string,
    index: number,
    { place = 'attachments', until = this.#clock.now() + defaultLifetime }: { place?: string; until?: number } = {},
  ): { url: string; expires_at: string } {
    const expires = Math.min(Math.ceil(until / 1000), Math.floor(caller.until / 1000))
    const by = caller.key_id === null ? makerOf(caller) : `${caller.key_id}.${caller.secret}`
    const signature = this.#signature(emailId, index, expires, by).toString('base64url')
    const maker = by === null ? '' : `&by=${by}`
    const url = `${this.#publicUrl()}/v1/${place}/${emailId}/${index}?expires=${expires}${maker}&signature=${signature}`
    return { url, expires_at: iso(expires * 1000) }
  }

  /**
   * Returns who requested the URL. Throws Fault forbidden for a URL that was not signed by this box, was modified, has expired, or belongs to a
   * key, secret or session that has ended.
   */
  async verify(emailId: string, index: number, { expires, by, signature }: SignedQuery): Promise<UrlHolder> {
    const received = Buffer.from(signature, 'base64url')
    const isValid =
      received.toString('base64url') === signature && sameBytes(received, this.#signature(emailId, index, expires, by ?? null))
    if (!isValid) throw new Fault('forbidden', 'The signature of this URL is not valid.', { code: 'bad_signature' })
    if (expires * 1000 <= this.#clock.now()) {
      throw new Fault('forbidden', 'This URL has expired; request a new one.', { code: 'url_expired' })
    }
    if (by === undefined) return byOperator(this.#account, null)
    const [id = '', secret] = by.split('.')
    const held = await this.#holders.holder(id, Number(secret))
    if (!held) {
      throw new Fault(
        'forbidden',
        'The key or session that requested this URL is no longer valid, or the secret of the key; request a new URL with another.',
        {
          code: 'url_ended',
        },
      )
    }
    return { account_id: held.account_id, actor: id, client: held.client ?? null }
  }

  /** Records a download in the audit log: a URL can be used by others than its holder. */
  record(holder: UrlHolder, download: Pick<AuditEntry, 'address' | 'action' | 'target' | 'identity_id'>): void {
    this.#audit.collect({ ...holder, ...download, detail: { by_url: true } })
  }

  #signature(emailId: string, index: number, expires: number, by: string | null): Buffer {
    return mac(this.#key, `v1|${emailId}|${index}|${expires}${by === null ? '' : `|${by}`}`)
  }
}
