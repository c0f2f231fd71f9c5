import { notFound } from '../core/fault.ts'
import { type HoldState, picked } from '../core/shapes.ts'
import { type EventType, uncountedMessageBytes } from '../events/model.ts'
import type { EventLog } from '../events/log.ts'
import { join, type Reader, sql, type Transaction } from '../store/database.ts'
import { type PhoneNumber, Sms, type SmsError, type SmsMedia } from './model.ts'

export interface SmsRow extends Omit<Sms, 'from' | 'to' | 'read' | 'error' | 'media' | 'codes' | 'hold' | 'deleted_at'> {
  seq: number
  account_id: string
  sender: string
  recipient: string
  read: number
  error: string | null
  codes: string
  /** A HoldState, as JSON. */
  hold: string | null
  attempting: number
  lost: number
  delivery_id: string | null
  /** Bytes of quota it uses besides its media. */
  octets: number
  /** Only in the trash. */
  deleted_at?: string
}

/** Every column. */
export const storedColumns: readonly string[] = (
  'seq id account_id identity_id direction status sender recipient body read provider provider_id segments error codes ' +
  'attempting lost delivery_id hold received_at sent_at delivered_at created_at octets'
).split(' ')

interface MediaRow {
  sms_id: string
  position: number
  content_type: string
  status: SmsMedia['status']
  size: number | null
  sha256: string | null
}

/** The row of one message; throws Fault not_found. */
export async function findSms(reader: Reader, identityId: string, id: string): Promise<SmsRow> {
  const row = await reader.get<SmsRow>(sql`SELECT * FROM sms WHERE id = ${id} AND identity_id = ${identityId}`)
  if (!row) throw notFound('SMS')
  return row
}

/** Messages in the API, with their media. */
export async function whole(reader: Reader, rows: readonly SmsRow[]): Promise<Sms[]> {
  if (rows.length === 0) return []
  const media = await reader.all<MediaRow>(
    sql`SELECT sms_id, position, content_type, status, size, sha256 FROM sms_media
      WHERE sms_id IN (${join(rows.map(({ id }) => id))}) ORDER BY sms_id, position`,
  )
  const byMessage = Map.groupBy(media, ({ sms_id }) => sms_id)
  return rows.map((row) => toSms(row, (byMessage.get(row.id) ?? []).map(record)))
}

/** Emits an event about a message. */
export async function emitSms(tx: Transaction, events: EventLog, type: EventType<Sms>, row: SmsRow): Promise<void> {
  const [data] = await whole(tx, [row])
  await events.append(tx, type, {
    account_id: row.account_id,
    identity_id: row.identity_id,
    data: data!,
    uncounted: uncountedMessageBytes,
  })
}

function toSms(row: SmsRow, media: SmsMedia[]): Sms {
  return picked(Sms, {
    ...row,
    from: row.sender,
    to: row.recipient,
    read: row.read === 1,
    error: row.error === null ? null : (JSON.parse(row.error) as SmsError),
    media,
    codes: JSON.parse(row.codes) as string[],
    hold: row.hold === null ? null : (JSON.parse(row.hold) as HoldState),
  })
}

function record({ position, content_type, status, size, sha256 }: MediaRow): SmsMedia {
  return { index: position, content_type, status, size, sha256 }
}

export interface NumberRow {
  seq: number
  id: string
  account_id: string
  identity_id: string | null
  provider: string
  provider_id: string | null
  number: string | null
  country: string
  status: 'wanted' | 'active' | 'releasing' | 'released' | 'void'
  created_at: string
}

/** The kind of these deliveries in the queue; the lane is the provider. */
export const releaseKind = 'number-release'

export interface ReleaseLoad {
  phone_id: string
}

/** A number in events. */
export function toPhoneNumber({ id, identity_id, number, country, provider }: NumberRow): PhoneNumber {
  return { id, identity_id, phone_number: number!, country, provider }
}
