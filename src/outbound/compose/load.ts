/** The queue's name for what the courier carries. */
export const kind = 'email'

/** One copy of a message, for one recipient's row. */
export interface EmailLoad {
  recipient_seq: number
  /** Only over checked TLS all the way (REQUIRETLS, RFC 8689). */
  require_tls?: true
}
