import type { Envelope } from './model.ts'

/** Where the receiver asks whether a recipient is ours, and hands over what it took. */
export interface Mailroom {
  /**
   * Resolves when mail to this address is accepted, throws a `Refusal` when it is not. The domain is a lower-case A-label, needless quotes
   * are removed from the local part; the bare `postmaster` of RFC 5321 4.1.1.3 comes as `postmaster`. `size` is what MAIL declared, in
   * octets (RFC 1870); 0 when it said nothing.
   */
  ownerOf(address: string, size: number): Promise<void>
  /**
   * Resolves with the queue id once the message is on disk: only then the client hears 250. A `Refusal` is passed on to the client, a full
   * disk reads 452 4.3.1, anything else 451 4.3.0.
   */
  keep(envelope: Envelope, raw: Buffer): Promise<string>
}
