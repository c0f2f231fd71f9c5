import type { Caller } from '../core/scopes.ts'
import type { Found } from '../message/findings.ts'
import type { Parsed } from '../message/parsed.ts'
import type { StoredEmail } from './email-rows.ts'
import type { Transaction } from '../store/database.ts'
import type { Envelope, Verdict } from './model.ts'

/** The result of examining a raw message. */
export interface Examination extends Partial<LookedAt> {
  parsed: Parsed
  verdict: Verdict
  /** Of the raw message, in hexadecimal. */
  sha256: string
  /** The raw message deflated (RFC 1951, no header); null where that saves nothing. */
  deflated: Uint8Array | null
  /** The bodies as JSON, deflated. */
  bodies: Uint8Array
  /** Size of that JSON in bytes. */
  body_size: number
  /** True if that JSON has the lists too: for a message to many whose lists are long. */
  long_lists?: boolean
  /** True if that JSON has all of `StoredFields`: for a short message from outside. */
  all_fields?: boolean
  /** The object that has the raw message, of a large one that was prepared for being stored. */
  object?: string
}

/** What policies look at in an outgoing message that was to be scanned. */
export interface LookedAt {
  /** Null where the scan failed. */
  found: Found[] | null
  /** Null where it is not known. */
  may_have_link: boolean | null
  /** True if it has a file that is no attachment; null where software differs in what its parts are. */
  may_have_file: boolean | null
}

/** A message that was examined and accepted. */
export interface ExaminedMessage {
  envelope: Envelope
  raw: Buffer
  examined: Examination
  spam: boolean
}

/** Implemented by outbound mail: called when callers change outbound messages, in the same transaction. */
export interface Dispatcher {
  /**
   * Changes the time of a scheduled message (ISO 8601). Throws Fault conflict when it is not scheduled, forbidden when the
   * caller's secret expires before.
   */
  reschedule(tx: Transaction, caller: Caller, email: StoredEmail, sendAt: string): Promise<void>
  /** Called before the message is deleted. */
  withdraw(tx: Transaction, emailId: string): Promise<unknown>
}
