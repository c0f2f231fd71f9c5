/** What the queue calls a message that waits for its time. */
export const kind = 'email-release'

/** One for the whole message; at its time it becomes a copy for each recipient. */
export interface ReleaseLoad {
  email_id: string
  require_tls: boolean
}
