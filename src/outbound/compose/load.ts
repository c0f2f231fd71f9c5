/** The kind of the deliveries in the queue. */
export const kind = 'email'

/** The copy of a message for one recipient, by its row. */
export interface EmailLoad {
  recipient_seq: number
  /** Only over checked TLS all the way (REQUIRETLS, RFC 8689). */
  require_tls?: true
}
