import type { Transaction } from '../store/database.ts'
import type { ParsedAddress } from '../mail/address.ts'
import type { ExaminedMessage } from '../mail/types.ts'
import type { Envelope, Verdict } from '../mail/model.ts'

/** Which domains are ours. */
export interface Hosted {
  /** True if mail for this domain (lower-case A-labels) is accepted. */
  receives(domain: string): boolean
}

/** Accepts mail for addresses of our domains that are not mailboxes: return paths and report addresses. */
export interface SystemAddressHandler {
  /** `accepted` for an address of this handler, `refused` for one that is invalid or has expired (550 5.1.1), `unknown` for any other. */
  classify(mailbox: ParsedAddress): 'accepted' | 'refused' | 'unknown'
  /** Called in the transaction that stores the message, once for each recipient of this handler. */
  receive(tx: Transaction, mailbox: ParsedAddress, message: ExaminedMessage): Promise<void>
  /** Called in the same transaction for a report that is stored for a mailbox, once for each message. */
  receiveReport?(tx: Transaction, message: ExaminedMessage): Promise<void>
}

/** Results of the checks of a message (RFC 8601), for the log. `dkim` has the result and domain of each signature. */
export interface CheckResults {
  spf: string
  dkim: string[]
  dmarc: string
  arc: string
  spam: boolean
}

/** Findings about an incoming message, for the log. */
export interface MessageFindings {
  results: CheckResults
  /** The Message-ID as in the header, with angle brackets. */
  message_id: string | null
  /** The domain of its From field. */
  from_domain: string | null
  /** The e-mails it was stored as. */
  email_ids: string[]
}

/** Checks the recipients of a receiver, and stores the messages that it accepted. */
export interface DeliveryTarget {
  /** MAIL: resolves when mail from this sender (empty for the null sender) is accepted. Absent where every sender is. */
  checkSender?(sender: string): Promise<void>
  /**
   * Resolves with the account of the mailbox ('' for an address without one) when mail to this address is accepted, else throws a `Refusal`.
   * The domain is in lower-case A-labels, the local part without needless quotes. The bare `postmaster` of RFC 5321 4.1.1.3 is passed as
   * `postmaster`. `size` is the size declared in MAIL, in octets (RFC 1870); 0 without one. `mailFrom` is its sender, empty for the null sender.
   */
  checkRecipient(address: string, size: number, mailFrom: string): Promise<string>
  /**
   * Resolves with the queue id once the message is on disk; only then the client is sent 250. A `Refusal` is sent to the client, a full
   * disk as 452 4.3.1, any other error as 451 4.3.0. `note` is called with findings as they become known, whatever the outcome.
   * `raw` is released after the promise resolves; copy the bytes to keep them longer. `account` is what `checkRecipient` returned for the
   * first recipient.
   */
  deliver(envelope: Envelope, raw: Buffer, note: (found: Partial<MessageFindings>) => void, account: string): Promise<string>
}

/** Called with the verdict on each message from outside, including refused ones. Must not throw. */
export type VerdictListener = (envelope: Envelope, verdict: Verdict) => void

/** Outcome of a login: the identity and its delivery target, or the reason for failure. `who` is null unless the user name is known. */
export type LoginResult =
  | { deliveryTarget: DeliveryTarget; who: string }
  | { deliveryTarget: null; who: string | null; why: string }

/** Authentication for message submission (RFC 6409): mail is accepted only after a login. */
export interface SubmissionAuth {
  /** The largest message in bytes, if below the limit of the receiver. */
  readonly size: number
  readonly max_recipients: number
  /** Never rejects for a wrong name or password. The delivery target may throw a `Fault`. */
  authenticate(user: string, password: string, address: string): Promise<LoginResult>
}
