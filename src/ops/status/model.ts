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
  response: z.string().nullable().meta({ description: 'the text of the reply, or the reason why there was none' }),
  mx: z.string().nullable().meta({ description: 'the host name of the server' }),
  ip: z.string().nullable().meta({ description: 'the address of the server' }),
  tls: z.string().nullable().meta({ description: 'version, cipher, and whether the certificate was verified' }),
}

export const QueueEntry = z
  .object({
    id: Id('dlv'),
    kind: z.string().meta({ description: 'email, email-release (waits for its time), webhook, sms, sms-media, …' }),
    destination: z.string().meta({ description: 'the destination that shares a concurrency limit: a domain, a webhook’s id, …' }),
    about: z.record(z.string(), z.string()).meta({ description: 'ids and addresses, without content' }),
    state: z.enum(['waiting', 'running', 'done', 'failed']),
    attempts: z.int(),
    last_answer: z.string().nullable().meta({ description: 'the response to the last finished attempt' }),
    ...server,
    reason: z.string().nullable().meta({ description: 'why it ended early, if it did' }),
    due_at: Timestamp.nullable().meta({ description: 'time of the next attempt' }),
    created_at: Timestamp,
    ended_at: Timestamp.nullable(),
    age: z.int().meta({ description: 'seconds from its creation to its end, or until now' }),
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
  age: z.int().meta({ description: 'age of the oldest, in seconds' }),
  due_at: Timestamp.nullable().meta({ description: 'time of the next attempt' }),
})

export const QueueSummary = z
  .object({
    kinds: z.array(z.object({ kind: z.string(), ...Depth.shape })),
    destinations: z
      .array(z.object({ kind: z.string(), destination: z.string(), ...Depth.shape }))
      .meta({ description: 'the hundred destinations with the most waiting deliveries' }),
  })
  .meta({ id: 'QueueSummary' })
export type QueueSummary = z.output<typeof QueueSummary>

export const Reloaded = z
  .object({
    reloaded: z.array(z.string()).meta({ description: 'changed settings that are in effect' }),
    restart: z.array(z.string()).meta({ description: 'settings that differ from those at the start and require a restart' }),
  })
  .meta({ id: 'Reloaded' })
export type Reloaded = z.output<typeof Reloaded>

export const Status = z
  .object({
    version: z.string(),
    started_at: Timestamp,
    uptime: z.int().meta({ description: 'seconds' }),
    failing: z.array(z.string()).meta({ description: 'failing modules: http, smtp, space, store' }),
    sending: z
      .object({
        domain: z.string().meta({ description: 'mail.domain, the domain of new addresses' }),
        can_send_outside: z.boolean().meta({ description: 'whether mail from it can be sent to any address' }),
        explanation: z.string().meta({ description: 'where it can be sent, and why' }),
        fix: z.string().nullable().meta({ description: 'what the operator can do; null if it can be sent anywhere' }),
      })
      .meta({ description: 'where mail from the domain of the box can be sent' }),
    identities: z.int(),
    queue: QueueSummary.shape.kinds,
    last_24_hours: z
      .object({
        emails_received: z.int(),
        emails_delivered: z.int().meta({ description: 'copies accepted by a server or a relay' }),
        emails_bounced: z.int(),
        emails_failed: z.int(),
        sms_received: z.int(),
        sms_sent: z.int(),
        sms_failed: z.int(),
      })
      .meta({ description: 'as far back as the event log goes' }),
    disk: z.object({
      free: z.int().nullable().meta({ description: 'bytes; null if it cannot be read' }),
      database: z.int().meta({ description: 'bytes of the database and its log' }),
      low: z.boolean().meta({ description: 'whether new data is rejected' }),
      min_free: z.int().meta({ description: 'free bytes below which new data is rejected' }),
    }),
  })
  .meta({ id: 'Status' })
export type Status = z.output<typeof Status>
