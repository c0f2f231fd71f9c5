import type { Transaction } from '../store/database.ts'
import type { ParsedAddress } from '../mail/address.ts'
import type { ExaminedMessage } from '../mail/types.ts'
import type { Envelope, Verdict } from '../mail/model.ts'

/** Which domains are ours. */
export interface Hosted {
  /** Whether mail for this domain (lower-case A-labels) is taken. */
  receives(domain: string): boolean
}

/** Takes mail for addresses of our domains that are no mailbox: return paths, and where reports go. */
export interface SystemAddressHandler {
  /** `taken` when the address is one of this desk's, `refused` when it is and takes nothing (any more): 550 5.1.1. */
  answers(mailbox: ParsedAddress): 'taken' | 'refused' | 'not ours'
  /** In the transaction that keeps the message; once for each recipient of this desk's. */
  receive(tx: Transaction, mailbox: ParsedAddress, message: ExaminedMessage): Promise<void>
  /** In the same transaction: a report that is kept for a mailbox; once for each message. */
  hears?(tx: Transaction, message: ExaminedMessage): Promise<void>
}

/** What the checks said of a message, in a word each (RFC 8601), for the log; `dkim` has a result and domain for each signature. */
export interface CheckResults {
  spf: string
  dkim: string[]
  dmarc: string
  arc: string
  spam: boolean
}

/** What is found out about a message on its way in, for the log. */
export interface MessageFindings {
  results: CheckResults
  /** As its header has it, with angle brackets. */
  message_id: string | null
  /** The domain of its From field. */
  from_domain: string | null
  /** The e-mails it was kept as. */
  email_ids: string[]
}

/** Where the receiver asks whether a recipient is ours, and hands over what it took. */
export interface DeliveryTarget {
  /** MAIL: resolves when mail of this sender (empty for the null sender) is taken; left out where everybody's is. */
  welcomes?(sender: string): Promise<void>
  /**
   * Resolves with the account that the mail is for ('' for nobody's) when mail to this address is accepted, throws a `Refusal` when it is not.
   * The domain is a lower-case A-label, needless quotes are removed from the local part; the bare `postmaster` of RFC 5321 4.1.1.3 comes as
   * `postmaster`. `size` is what MAIL declared, in octets (RFC 1870); 0 when it said nothing.
   */
  checkRecipient(address: string, size: number): Promise<string>
  /**
   * Resolves with the queue id once the message is on disk: only then the client hears 250. A `Refusal` is passed on to the client, a full
   * disk reads 452 4.3.1, anything else 451 4.3.0. `note` hears what is found out, as soon as it is, whatever becomes of the message.
   * `raw` is given up once it has resolved: whoever needs the octets for longer copies them. `account` is what `ownerOf` said of the first
   * recipient.
   */
  deliver(envelope: Envelope, raw: Buffer, note: (found: Partial<MessageFindings>) => void, account: string): Promise<string>
}

/** Hears what the checks said of each message of others', also of one that is refused; must not throw. */
export type VerdictListener = (envelope: Envelope, verdict: Verdict) => void

/** What came of a login: who it is and the mailroom of theirs, or why not; `who` is null unless the name is known here. */
export type LoginResult =
  | { deliveryTarget: DeliveryTarget; who: string }
  | { deliveryTarget: null; who: string | null; why: string }

/** Where programs of ours hand in mail (RFC 6409): nothing is taken but from who has logged in. */
export interface SubmissionAuth {
  /** The largest message in octets, if it is less than what the receiver takes. */
  readonly size: number
  readonly max_recipients: number
  /** Never rejects for a name or password that is wrong; what the mailroom throws may be a `Fault`. */
  enter(user: string, password: string, address: string): Promise<LoginResult>
}
