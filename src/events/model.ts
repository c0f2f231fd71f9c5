import type * as z from 'zod'
import type { Scope } from '../core/scopes.ts'

/** The one envelope of an event: the same, with the same id, on webhook, socket, wait and list. */
export interface Event {
  /** Commit order on this box; never shown. */
  seq: number
  id: string
  type: string
  account_id: string
  identity_id: string | null
  created_at: string
  data: unknown
}

/** What a follower of the log is told of an event; a backlog of large ones must not be read into memory for that. */
export type EventHeader = Omit<Event, 'data'> & {
  /** The id of the resource it is about, where `data` has one. */
  resource_id: string | null
  /** What `append` was told to keep of it for good; no content, so that erasing what the event carries leaves it. */
  remark: string | null
}

/** An event type, declared once, next to the resource it carries. */
export interface EventType<Data = unknown> {
  name: string
  /** Any one of these scopes lets a key see it. */
  scopes: Scope[]
  summary: string
  data: z.ZodType<Data>
}

/** Octets of an event of a message that take no room. */
export const littleOfMessages = 4096

export function eventType<Data>(name: string, scopes: Scope[], summary: string, data: z.ZodType<Data>): EventType<Data> {
  return { name, scopes, summary, data }
}
