/** The kind of scheduled messages in the queue. */
export const kind = 'email-release'

/** One delivery for the whole message; when it is due, a copy for each recipient is enqueued. */
export interface ReleaseLoad {
  email_id: string
  require_tls: boolean
}
