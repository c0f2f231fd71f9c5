import { createHash } from 'node:crypto'
import { hour, minute } from '../core/clock.ts'
import type { Plan } from '../accounts/plan.ts'
import { conflict, Fault, notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { SignedQuery } from '../core/shapes.ts'
import { type Courier, TemporaryFailure, type Outcome, PermanentFailure } from '../queue/courier.ts'
import type { WorkLimiter, WorkShare } from '../net/work-limiter.ts'
import type { Download } from '../http/route.ts'
import { readIndex, type SignedUrls } from '../mail/attachments.ts'
import type { Trash } from '../ops/retention/trash.ts'
import { insertBlob, readBlob } from '../store/blobs.ts'
import { type Database, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import { bytesOf, takeStorage } from './media-quota.ts'
import type { Messages } from './messages.ts'
import type { SmsMedia, SmsMediaWithUrl } from './model.ts'
import { Rejected, type SmsProvider, toTemporaryFailure } from './provider.ts'
import type { SmsRow } from './rows.ts'

/** The kind of these deliveries in the queue; the lane is the provider and the number. */
export const mediaKind = 'sms-media'

export interface MediaLoad {
  sms_id: string
  position: number
}

interface MediaRow {
  content_type: string
  status: SmsMedia['status']
  source: string | null
  size: number | null
  sha256: string | null
  blob_id: number | null
}

/** Content types that browsers get; all others are served as application/octet-stream. Nothing is served inline. */
const safeTypes = /^(?:image\/(?:png|jpeg|gif|webp)|audio\/[\w.+-]+|video\/[\w.+-]+|text\/(?:plain|vcard))$/

/** The media of messages, for callers. */
export class MediaStore {
  readonly #database: Database
  readonly #messages: Messages
  readonly #urls: SignedUrls

  constructor(deps: { database: Database; messages: Messages; urls: SignedUrls }) {
    this.#database = deps.database
    this.#messages = deps.messages
    this.#urls = deps.urls
  }

  async get(caller: Caller, identityId: string, smsId: string, index: string): Promise<SmsMediaWithUrl> {
    const { id } = await this.#messages.row(caller, identityId, smsId)
    const position = readIndex(index, 'a file')
    const { content_type, status, size, sha256 } = await this.#row(id, position)
    return { index: position, content_type, status, size, sha256, ...this.#urls.sign(caller, id, position, { place: 'media' }) }
  }

  /** Opens the file of a signed URL. */
  async open(smsId: string, index: string, query: SignedQuery, ip: string): Promise<Download> {
    const position = readIndex(index, 'a file')
    const holder = await this.#urls.verify(smsId, position, query)
    const { id, identity_id } = await this.#messages.signedRow(smsId)
    const row = await this.#row(id, position)
    if (row.status === 'pending') throw conflict('It is still being fetched from the provider.', { code: 'media_pending' })
    const bytes = row.blob_id === null ? undefined : await readBlob(this.#database, row.blob_id)
    if (!bytes) throw notFound('media')
    this.#urls.record(holder, { address: ip, action: 'media.downloaded', target: id, identity_id })
    return {
      type: safeTypes.test(row.content_type) ? row.content_type : 'application/octet-stream',
      bytes,
      headers: { 'Content-Disposition': `attachment; filename="${smsId}-${position}"` },
    }
  }

  async #row(smsId: string, position: number): Promise<MediaRow> {
    const row = await this.#database.get<MediaRow>(
      sql`SELECT * FROM sms_media WHERE sms_id = ${smsId} AND position = ${position}`,
    )
    if (!row) throw notFound('media')
    return row
  }
}

/** Fetches the media of messages from the provider. */
export class MediaCourier implements Courier<MediaLoad> {
  readonly kind = mediaKind
  readonly schedule = [0, 5000, minute, 10 * minute, hour]
  readonly jitter = 0.1
  readonly slowAfter = 20_000
  readonly #database: Database
  readonly #provider: SmsProvider | undefined
  readonly #plan: Plan
  readonly #trash: Trash
  readonly #fetches: WorkLimiter
  /** Fetched files that are not stored yet. */
  readonly #fetched = new Map<string, { bytes: Buffer; share: WorkShare }>()

  constructor(deps: { database: Database; provider: SmsProvider | undefined; plan: Plan; trash: Trash; fetches: WorkLimiter }) {
    this.#fetches = deps.fetches
    this.#trash = deps.trash
    this.#database = deps.database
    this.#provider = deps.provider
    this.#plan = deps.plan
  }

  async deliver({ sms_id, position }: MediaLoad, _attempt: number, signal: AbortSignal): Promise<string> {
    const row = await this.#database.get<MediaRow>(sql`SELECT * FROM sms_media WHERE ${pending(sms_id, position)}`)
    const message = await findMessage(this.#database, sms_id)
    if (!message || !row || row.source === null) throw new PermanentFailure('it no longer exists')
    const provider = this.#provider
    if (!provider?.fetch) throw new PermanentFailure('the provider is no longer configured')
    const { account_id } = message
    if (!(await this.#fitsQuota(account_id, 1))) throw new TemporaryFailure('the storage quota of the account is full')
    const { source } = row
    const share = this.#fetches.share(account_id)
    try {
      const bytes = await share.run(signal, () => provider.fetch!(source, signal, share.reserve))
      await this.#fitsQuota(account_id, bytes.length)
      const key = `${sms_id} ${position}`
      this.#fetched.get(key)?.share.release()
      this.#fetched.set(key, { bytes, share })
      return 'fetched'
    } catch (error) {
      share.release()
      if (error instanceof Rejected) throw new PermanentFailure(error.message)
      if (error instanceof Fault && error.retryAfter !== undefined)
        throw new TemporaryFailure(error.message, error.retryAfter * 1000)
      throw toTemporaryFailure(error)
    }
  }

  /** True if the quota has room for this many bytes; purges the trash if needed. */
  async #fitsQuota(account_id: string, bytes: number): Promise<boolean> {
    const lacking = bytes - (await this.#plan.available(this.#database, account_id))
    return lacking <= 0 || this.#trash.freeBytes({ account_id }, lacking)
  }

  async settle(tx: Transaction, { sms_id, position }: MediaLoad, outcome: Outcome): Promise<void> {
    const key = `${sms_id} ${position}`
    const fetched = this.#fetched.get(key)
    const where = pending(sms_id, position)
    if (outcome === 'failed') await tx.run(sql`UPDATE sms_media SET status = 'failed' WHERE ${where}`)
    if (outcome !== 'done' || !fetched) return
    const { bytes, share } = fetched
    tx.afterCommit(() => {
      this.#fetched.delete(key)
      share.release()
    })
    const message = await findMessage(tx, sms_id)
    // it may have been purged meanwhile
    if (!message || !(await tx.get(sql`SELECT 1 FROM sms_media WHERE ${where}`))) return
    if (!(await takeStorage(tx, this.#plan, message, bytes.length))) {
      await tx.run(sql`UPDATE sms_media SET status = 'failed' WHERE ${where}`)
      return
    }
    const hash = createHash('sha256').update(bytes).digest()
    const blob = await insertBlob(tx, { size: bytes.length, sha256: hash, deflated: false, bytes })
    await tx.run(
      sql`UPDATE sms_media SET status = 'kept', size = ${bytes.length}, sha256 = ${hash.toString('hex')}, blob_id = ${blob} WHERE ${where}`,
    )
    await this.#trash.resize(tx, sms_id, await bytesOf(tx, message))
  }
}

/** The condition of a file that is still to be fetched. */
function pending(smsId: string, position: number): Sql {
  return sql`sms_id = ${smsId} AND position = ${position} AND status = 'pending'`
}

/** A message, also one in the trash: it can be restored, with its files. */
function findMessage(
  reader: Reader,
  id: string,
): Promise<Pick<SmsRow, 'id' | 'account_id' | 'identity_id' | 'octets'> | undefined> {
  return reader.get(
    sql`SELECT id, account_id, identity_id, octets FROM sms WHERE id = ${id}
      UNION ALL SELECT id, account_id, identity_id, octets FROM sms_trash WHERE id = ${id}`,
  )
}
