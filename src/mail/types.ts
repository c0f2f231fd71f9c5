import type { Caller } from '../core/scopes.ts'
import type { Parsed } from '../message/parsed.ts'
import type { StoredEmail } from './email-rows.ts'
import type { Transaction } from '../store/database.ts'
import type { Envelope, Verdict } from './model.ts'

/** All there is to know of a message's octets. */
export interface Examination {
  parsed: Parsed
  verdict: Verdict
  /** Of the octets as they came, in hexadecimal. */
  sha256: string
  /** The octets deflated (RFC 1951, no header); null where that saves nothing. */
  deflated: Uint8Array | null
  /** The bodies as JSON, deflated. */
  bodies: Uint8Array
  /** Octets of that JSON. */
  body_size: number
}

/** A message that was examined and is wanted. */
export interface ExaminedMessage {
  envelope: Envelope
  raw: Buffer
  examined: Examination
  spam: boolean
}

/** Who sends what identities write: told of what callers do to messages of theirs, in the transaction that does it. */
export interface Dispatcher {
  /** The message is to leave at another time (ISO 8601). Throws Fault conflict when it is not scheduled, forbidden when the caller's secret works no longer then. */
  reschedule(tx: Transaction, caller: Caller, email: StoredEmail, sendAt: string): Promise<void>
  /** The message is about to be deleted. */
  withdraw(tx: Transaction, emailId: string): Promise<void>
}
