import type { JsonBounds } from '../core/json.ts'
import type { Scope } from '../core/scopes.ts'
import { Email } from '../mail/model.ts'
import { Sms } from '../sms/model.ts'
import type { ChannelName } from './model.ts'

/** The limits of a frame's JSON, including its depth: the payload of a join is echoed, and serializing takes stack for each level. */
export const frameBounds: JsonBounds = { depth: 32, tokens: 2000 }

/** A channel: the scopes it requires, and its events. */
interface Channel {
  /** Any one of these scopes opens it; it delivers only events whose own scopes the key has. */
  scopes: Scope[]
  covers: (type: string) => boolean
  /** The known fields of its rows. */
  columns: ReadonlySet<string> | undefined
}

/** The most subscriptions of one socket, in either protocol. */
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
