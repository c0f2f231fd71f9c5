import type { JsonBounds } from '../core/json-scan.ts'
import type { Scope } from '../core/scopes.ts'
import { Email } from '../mail/model.ts'
import { Sms } from '../sms/model.ts'
import type { ChannelName } from './model.ts'

/** What the JSON of one frame may hold. Its depth too: what a join asks is echoed, and writing JSON takes stack for each level. */
export const frameBounds: JsonBounds = { depth: 32, tokens: 2000 }

/** A channel: who may open it, and which events are on it. */
export interface Channel {
  /** Any one of these scopes opens it; of its events only those are heard whose own scopes the key holds. */
  scopes: Scope[]
  covers: (type: string) => boolean
  /** The fields of its rows, as far as they are known. */
  columns: ReadonlySet<string> | undefined
}

/** Subscriptions of one socket, in either protocol. */
export const maxSubscriptions = 100

export const channels: Readonly<Record<ChannelName, Channel>> = {
  agent_events: {
    scopes: ['identities:read', 'messages:read', 'emails:read', 'sms:read', 'cards:read'],
    covers: () => true,
    columns: new Set(['id', 'type', 'event', 'identity_id', 'created_at', 'data']),
  },
  email_messages: {
    scopes: ['messages:read', 'emails:read'],
    covers: (type) => type.startsWith('email.'),
    columns: new Set(Object.keys(Email.shape)),
  },
  sms_messages: {
    scopes: ['messages:read', 'sms:read'],
    covers: (type) => type.startsWith('sms.'),
    columns: new Set(Object.keys(Sms.shape)),
  },
}
