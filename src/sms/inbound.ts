import { createHash } from 'node:crypto'
import type { Basis } from '../basis.ts'
import type { Plan } from '../accounts/plan.ts'
import { day, iso } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import type { Counter } from '../core/metrics.ts'
import type { Queue } from '../queue/queue.ts'
import type { Trash } from '../ops/retention/trash.ts'
import { codesIn } from '../message/codes.ts'
import { insertBlob } from '../store/blobs.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import { mediaKind, type MediaLoad } from './media.ts'
import { countTexts, bytesOfTexts, takeStorage } from './media-quota.ts'
import { smsDelivered, smsFailed, smsReceived, smsSent } from './model.ts'
import { type NumberRow, type SmsRow, emitSms } from './rows.ts'
import type { Numbers } from './numbers.ts'
import { noteInput, inputOf } from './opt-outs.ts'
import type { IncomingSms, ProviderName, StatusUpdate } from './provider.ts'
import { segmentsOf } from './segments.ts'

interface Deps extends Pick<Basis, 'metrics' | 'database' | 'events' | 'clock' | 'log'> {
  queue: Queue
  plan: Plan
  trash: Trash
  numbers: Numbers
  /** The largest media file in bytes. */
  mediaLimit: () => number
}

/** The allowed status transitions; delivered and failed are final. */
const next: Record<StatusUpdate['status'], readonly SmsRow['status'][]> = {
  sent: ['queued', 'unknown'],
  delivered: ['queued', 'sent', 'unknown'],
  failed: ['queued', 'sent', 'unknown'],
}

/** How long received message ids are remembered, in milliseconds: Twilio, whose calls carry no time, stores messages for 13 months. */
const remembered = 400 * day

/** Stores callbacks of providers: messages for our numbers, and delivery statuses of sent ones. */
export class Inbound {
  readonly #deps: Deps
  readonly #received: Counter<'provider' | 'result'>

  constructor(deps: Deps) {
    this.#deps = deps
    this.#received = deps.metrics.counter(
      'pillarbox_sms_received_total',
      'Text messages received from providers: kept, repeat (received before), nobody (for an unassigned number)',
      ['provider', 'result'],
    )
  }

  /** Stores a message once. Returns whether it is stored now, was before, or has no recipient here. */
  async receive(provider: ProviderName, sms: IncomingSms): Promise<'kept' | 'repeat' | 'nobody'> {
    await this.#freeQuota(sms)
    const result = await this.#receive(provider, sms)
    this.#received.labels(provider, result).inc()
    return result
  }

  #receive(provider: ProviderName, sms: IncomingSms): Promise<'kept' | 'repeat' | 'nobody'> {
    const { database, numbers, log, clock } = this.#deps
    return database.transaction(async (tx) => {
      const holder = await numbers.holder(sms.to, tx)
      if (!holder || holder.provider !== provider) {
        tx.afterCommit(() => log.warn({ provider, to: sms.to }, 'text message received for an unassigned number'))
        return 'nobody'
      }
      if (await this.has(provider, sms.provider_id, tx)) {
        tx.afterCommit(() => log.info({ provider, provider_id: sms.provider_id }, 'duplicate text message ignored'))
        return 'repeat'
      }
      await tx.run(
        sql`INSERT INTO sms_seen (provider, provider_id, seen_at) VALUES (${provider}, ${sms.provider_id}, ${iso(clock.now())})`,
      )
      await this.#store(tx, holder, provider, sms)
      return 'kept'
    })
  }

  /** True if a message is stored, or was before it was deleted. */
  async has(provider: ProviderName, id: string, reader: Reader = this.#deps.database): Promise<boolean> {
    const known = await reader.get(
      sql`SELECT 1 FROM sms_seen WHERE provider = ${provider} AND provider_id = ${id}
        UNION ALL SELECT 1 FROM sms WHERE provider = ${provider} AND provider_id = ${id} AND direction = 'inbound'`,
    )
    return known !== undefined
  }

  /** Drops ids that are too old for any provider to repeat. Ids of stored messages are kept. */
  async forget(): Promise<void> {
    const { database, clock } = this.#deps
    await database.transaction((tx) => tx.run(sql`DELETE FROM sms_seen WHERE seen_at < ${iso(clock.now() - remembered)}`))
  }

  /** Stores a delivery status; returns whether it was a change. */
  async update(provider: ProviderName, update: StatusUpdate): Promise<boolean> {
    const { database, log } = this.#deps
    return database.transaction(async (tx) => {
      const row = await tx.get<SmsRow>(
        update.sms_id === undefined
          ? sql`SELECT * FROM sms WHERE provider = ${provider} AND provider_id = ${update.provider_id ?? ''} AND direction = 'outbound'`
          : sql`SELECT * FROM sms WHERE id = ${update.sms_id} AND provider = ${provider} AND direction = 'outbound'`,
      )
      if (!row || !next[update.status].includes(row.status)) {
        tx.afterCommit(() => log.debug({ provider, ...update }, 'status without effect'))
        return false
      }
      // followers of the log get every status, none is skipped
      if (update.status === 'delivered' && row.sent_at === null) await this.#advance(tx, row, { ...update, status: 'sent' })
      await this.#advance(tx, row, update)
      return true
    })
  }

  /** Purges the trash if the media of a message need space. */
  async #freeQuota({ to, body, media }: IncomingSms): Promise<void> {
    const { database, numbers, plan, trash } = this.#deps
    const holder = await numbers.holder(to, database)
    if (!holder) return
    let bytes = bytesOfTexts(body)
    for (const one of media) if ('bytes' in one) bytes += one.bytes.length
    const { account_id } = holder
    const lacking = bytes - (await plan.available(database, account_id))
    if (lacking > 0) await trash.freeBytes({ account_id }, lacking)
  }

  async #advance(tx: Transaction, row: SmsRow, update: StatusUpdate): Promise<void> {
    const { events, clock } = this.#deps
    const now = iso(clock.now())
    const after = await tx.get<SmsRow>(
      sql`UPDATE sms SET status = ${update.status}, error = ${update.error ? JSON.stringify(update.error) : null},
          provider_id = coalesce(provider_id, ${update.provider_id ?? null}), sent_at = coalesce(sent_at, ${update.status === 'failed' ? null : now}),
          delivered_at = ${update.status === 'delivered' ? now : null} WHERE id = ${row.id} RETURNING *`,
    )
    const type = { sent: smsSent, delivered: smsDelivered, failed: smsFailed }[update.status]
    await emitSms(tx, events, type, after!)
    if (update.error?.code === '21610') await noteInput(tx, 'stop', row.sender, row.recipient, now)
  }

  async #store(tx: Transaction, holder: NumberRow, provider: ProviderName, sms: IncomingSms): Promise<void> {
    const { events, clock } = this.#deps
    const now = iso(clock.now())
    const { provider_id, from, to, body } = sms
    const [error, codes] = [sms.error ? JSON.stringify(sms.error) : null, JSON.stringify(codesIn('', body))]
    const bytes = bytesOfTexts(body, codes, error)
    const row = await tx.get<SmsRow>(
      sql`INSERT INTO sms (id, account_id, identity_id, direction, status, sender, recipient, body, read, provider, provider_id, segments, error,
          codes, received_at, created_at, octets)
        VALUES (${newId('sms')}, ${holder.account_id}, ${holder.identity_id}, 'inbound', 'received', ${from}, ${to}, ${body}, 0, ${provider},
          ${provider_id}, ${segmentsOf(body)}, ${error}, ${codes}, ${now},
          ${now}, ${bytes}) RETURNING *`,
    )
    await countTexts(tx, this.#deps.plan, row!, bytes)
    await this.#keepMedia(tx, row!, sms.media)
    const input = sms.input ?? inputOf(body)
    if (input) await noteInput(tx, input, to, from, now)
    await emitSms(tx, events, smsReceived, row!)
  }

  async #keepMedia(tx: Transaction, row: SmsRow, media: IncomingSms['media']): Promise<void> {
    const { id, provider, recipient } = row
    const { queue, mediaLimit } = this.#deps
    for (const [position, one] of media.entries()) {
      if ('source' in one) {
        await tx.run(
          sql`INSERT INTO sms_media (sms_id, position, content_type, status, source)
            VALUES (${id}, ${position}, ${one.content_type}, 'pending', ${one.source})`,
        )
        const load: MediaLoad = { sms_id: id, position }
        await queue.enqueue(tx, { kind: mediaKind, lane: `${provider} ${recipient}`, account_id: row.account_id, load })
      } else if (one.bytes.length > mediaLimit()) {
        await tx.run(
          sql`INSERT INTO sms_media (sms_id, position, content_type, status) VALUES (${id}, ${position}, ${one.content_type}, 'failed')`,
        )
      } else {
        const { bytes } = one
        if (!(await takeStorage(tx, this.#deps.plan, row, bytes.length))) {
          await tx.run(
            sql`INSERT INTO sms_media (sms_id, position, content_type, status) VALUES (${id}, ${position}, ${one.content_type}, 'failed')`,
          )
          continue
        }
        const hash = createHash('sha256').update(bytes).digest()
        const blob = await insertBlob(tx, { size: bytes.length, sha256: hash, deflated: false, bytes })
        await tx.run(
          sql`INSERT INTO sms_media (sms_id, position, content_type, status, size, sha256, blob_id)
            VALUES (${id}, ${position}, ${one.content_type}, 'kept', ${bytes.length}, ${hash.toString('hex')}, ${blob})`,
        )
      }
    }
  }
}
