/** The kind of the deliveries in the queue. */
export const emailKind = 'email'

/** The copy of a message for one recipient, by its row. */
export interface EmailLoad {
  recipient_seq: number
  /** Only over checked TLS all the way (REQUIRETLS, RFC 8689). */
  require_tls?: true
}

/** The kind of scheduled messages in the queue. */
export const releaseKind = 'email-release'

/** One delivery for the whole message; when it is due, a copy for each recipient is enqueued. */
export interface ReleaseLoad {
  email_id: string
  require_tls: boolean
}
