import type * as z from 'zod'
import type { Scope } from '../core/scopes.ts'

/** An event, in the same form and with the same id in webhooks, sockets, waits and lists. */
export interface Event {
  /** The position in commit order; internal. */
  seq: number
  id: string
  type: string
  account_id: string
  identity_id: string | null
  created_at: string
  data: unknown
}

/** An event without its data, as followers read it, so that a backlog of large events is not read into memory. */
export type EventHeader = Omit<Event, 'data'> & {
  /** The id of the resource in `data`, if there is one. */
  resource_id: string | null
  /** The annotation given to `append`; it holds no content and stays when the data is redacted. */
  annotation: string | null
}

/** The place of an event in the log, and the resource that it is about. */
export type EventReference = Pick<EventHeader, 'seq' | 'type' | 'resource_id'>

/** An event type, declared next to the resource that its data holds. */
export interface EventType<Data = unknown> {
  name: string
  /** Any one of these scopes lets a key see it. */
  scopes: Scope[]
  summary: string
  data: z.ZodType<Data>
}

/** Bytes of an event of a message that do not count against the quota. */
export const uncountedMessageBytes = 4096

export function eventType<Data>(name: string, scopes: Scope[], summary: string, data: z.ZodType<Data>): EventType<Data> {
  return { name, scopes, summary, data }
}
