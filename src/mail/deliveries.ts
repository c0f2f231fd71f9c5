import { readStoredAnswer } from '../queue/courier.ts'
import { type Attempt, attemptsOf, outcomes } from '../queue/history.ts'
import { join, type Reader, sql } from '../store/database.ts'
import type { Delivery, DeliveryAttempt, Email } from './model.ts'

/** A row of `email_recipients`. */
export interface RecipientRow extends Omit<Delivery, 'recipient'> {
  seq: number
  email_id: string
  position: number
  field: 'to' | 'cc' | 'bcc'
  address: string
  bounced_at: string | null
  complained_at: string | null
  delivery_id: string | null
  /** 1: it only waits for its identity, which is suspended. */
  suspended: number
}

/** The result of an attempt, as stored by the queue. */
export interface AttemptAnswer {
  outcome: 'delivered' | 'sent' | 'deferred' | 'bounced' | 'failed'
  smtp_code: number | null
  enhanced_code: string | null
  response: string
  mx: string | null
  /** The address of that server; absent in attempts of older versions. */
  ip?: string | null
  tls: string | null
}

/** The deliveries of outbound messages by message id, in the order of recipients. */
export async function deliveriesOf(reader: Reader, emailIds: string[]): Promise<Map<string, Delivery[]>> {
  const rows = await recipientsOf(reader, emailIds)
  const grouped = Map.groupBy(rows, ({ email_id }) => email_id)
  return new Map([...grouped].map(([id, list]) => [id, list.map(deliveryOf)]))
}

/** The deliveries of one message with all attempts that the queue still stores. */
export async function deliveriesWithHistory(reader: Reader, emailId: string): Promise<Email['deliveries']> {
  const rows = await recipientsOf(reader, [emailId])
  const attempts = await attemptsOf(
    reader,
    rows.flatMap(({ delivery_id }) => delivery_id ?? []),
  )
  return rows.map((row) => ({
    ...deliveryOf(row),
    history: (attempts.get(row.delivery_id ?? '') ?? []).map(deliveryAttemptOf),
  }))
}

export function deliveryOf(row: RecipientRow): Delivery {
  const { address, status, smtp_code, enhanced_code, response, mx, tls, attempts, next_attempt_at, delivered_at } = row
  return { recipient: address, status, smtp_code, enhanced_code, response, mx, tls, attempts, next_attempt_at, delivered_at }
}

/** The status of a message: the worst of its recipients, unfinished ones first. */
export function overallStatus(statuses: Delivery['status'][]): Delivery['status'] {
  return order.find((status) => statuses.includes(status)) ?? 'queued'
}

const order: Delivery['status'][] = [
  'deferred',
  'sending',
  'queued',
  'scheduled',
  'held',
  'bounced',
  'failed',
  'cancelled',
  'sent',
  'delivered',
]

/** Parses the stored result of an attempt. A sentence of the queue itself becomes the response. */
function readAttempt(answer: string | null): Partial<AttemptAnswer> {
  const read = answer === null ? {} : (readStoredAnswer(answer) as AttemptAnswer | string)
  return typeof read === 'string' ? { response: read } : read
}

async function recipientsOf(reader: Reader, emailIds: string[]): Promise<RecipientRow[]> {
  if (emailIds.length === 0) return []
  return reader.all<RecipientRow>(
    sql`SELECT * FROM email_recipients WHERE email_id IN (${join(emailIds)}) ORDER BY email_id, position`,
  )
}

function deliveryAttemptOf({ number, started_at, ended_at, outcome, answer }: Attempt): DeliveryAttempt {
  const result = readAttempt(answer)
  return {
    number,
    started_at,
    ended_at,
    outcome: result.outcome ?? (outcome === null ? 'pending' : outcomes[outcome]),
    response: result.response ?? null,
    mx: result.mx ?? null,
    tls: result.tls ?? null,
  }
}
