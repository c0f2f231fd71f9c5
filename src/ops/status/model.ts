import * as z from 'zod'
import { Id, Paging, Timestamp } from '../../core/shapes.ts'

const Word = z.string().regex(/^[\w-]{1,64}$/, { error: 'must be a kind such as email or webhook' })

export const QueueFilter = z.strictObject({
  ...Paging.shape,
  state: z
    .enum(['open', 'waiting', 'running', 'done', 'failed', 'all'])
    .default('open')
    .meta({ description: 'open are those that are waiting or running' }),
  kind: Word.optional().meta({ description: 'email, webhook, sms, …' }),
  destination: z.string().min(1).max(320).optional().meta({ description: 'a domain, a webhook’s id, …' }),
})
export type QueueFilter = z.output<typeof QueueFilter>

/** The answer of a mail server to an attempt, and the server; null for other kinds. */
const server = {
  smtp_code: z.int().nullable().meta({ description: 'of the reply of the mail server (RFC 5321 4.2)' }),
  enhanced_code: z.string().nullable().meta({ description: 'RFC 3463' }),
  response: z.string().nullable().meta({ description: 'the text of the reply, or why there was none' }),
  mx: z.string().nullable().meta({ description: 'the server that was spoken to' }),
  ip: z.string().nullable().meta({ description: 'its address' }),
  tls: z.string().nullable().meta({ description: 'version, cipher, and whether the certificate was checked' }),
}

/** A delivery in the queue, of any kind. */
export const QueueEntry = z
  .object({
    id: Id('dlv'),
    kind: z.string().meta({ description: 'email, email-release (waits for its time), webhook, sms, sms-media, …' }),
    destination: z.string().meta({ description: 'what is served a little at a time: a domain, a webhook’s id, …' }),
    about: z.record(z.string(), z.string()).meta({ description: 'ids and addresses; nothing of the content' }),
    state: z.enum(['waiting', 'running', 'done', 'failed']),
    attempts: z.int(),
    last_answer: z.string().nullable().meta({ description: 'what the last attempt that is over heard' }),
    ...server,
    reason: z.string().nullable().meta({ description: 'who ended it, when it was not tried to its end' }),
    due_at: Timestamp.nullable().meta({ description: 'when it is tried next' }),
    created_at: Timestamp,
    ended_at: Timestamp.nullable(),
    age: z.int().meta({ description: 'seconds from its creation to its end, or to now' }),
  })
  .meta({ id: 'QueueEntry' })
export type QueueEntry = z.output<typeof QueueEntry>

export const QueueEntryWithHistory = z
  .object({
    ...QueueEntry.shape,
    history: z.array(
      z.object({
        number: z.int(),
        started_at: Timestamp,
        ended_at: Timestamp.nullable(),
        outcome: z.enum(['done', 'failed', 'deferred', 'interrupted', 'pending']),
        answer: z.string().nullable(),
        ...server,
      }),
    ),
  })
  .meta({ id: 'QueueEntryWithHistory' })
export type QueueEntryWithHistory = z.output<typeof QueueEntryWithHistory>

const Depth = z.object({
  waiting: z.int(),
  running: z.int(),
  age: z.int().meta({ description: 'of the oldest, in seconds' }),
  due_at: Timestamp.nullable().meta({ description: 'when the next is tried' }),
})

/** The length and age of the queue. */
export const QueueSummary = z
  .object({
    kinds: z.array(z.object({ kind: z.string(), ...Depth.shape })),
    destinations: z
      .array(z.object({ kind: z.string(), destination: z.string(), ...Depth.shape }))
      .meta({ description: 'the hundred that most waits for' }),
  })
  .meta({ id: 'QueueSummary' })
export type QueueSummary = z.output<typeof QueueSummary>

/** The result of a reload of the settings. */
export const Reloaded = z
  .object({
    reloaded: z.array(z.string()).meta({ description: 'settings that changed and are in effect' }),
    restart: z.array(z.string()).meta({ description: 'settings that differ from those of the start and need one' }),
  })
  .meta({ id: 'Reloaded' })
export type Reloaded = z.output<typeof Reloaded>

/** The status of the box. */
export const Status = z
  .object({
    version: z.string(),
    started_at: Timestamp,
    uptime: z.int().meta({ description: 'seconds' }),
    failing: z.array(z.string()).meta({ description: 'what of the box does not work now: http, smtp, space, store' }),
    identities: z.int(),
    queue: QueueSummary.shape.kinds,
    last_24_hours: z
      .object({
        emails_received: z.int(),
        emails_delivered: z.int().meta({ description: 'copies that a server, or a relay, took' }),
        emails_bounced: z.int(),
        emails_failed: z.int(),
        sms_received: z.int(),
        sms_sent: z.int(),
        sms_failed: z.int(),
      })
      .meta({ description: 'as far as the log goes back' }),
    disk: z.object({
      free: z.int().nullable().meta({ description: 'octets; null when the disk does not say' }),
      database: z.int().meta({ description: 'octets of the database and its log' }),
      low: z.boolean().meta({ description: 'nothing new is taken' }),
      min_free: z.int().meta({ description: 'octets free below which nothing new is taken' }),
    }),
  })
  .meta({ id: 'Status' })
export type Status = z.output<typeof Status>
