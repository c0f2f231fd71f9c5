import type { Address, Attachment, Link } from '../mail/model.ts'
import type { Report } from './reports/reported.ts'

/** What the box makes of a message's octets. Every list is empty and every text null when there is none. */
export interface Parsed {
  subject: string
  /** The first mailbox of the one From field; null when there is none that can be read. */
  from: Address | null
  reply_to: string | null
  to: Address[]
  cc: Address[]
  /** With angle brackets, as written. */
  message_id: string | null
  in_reply_to: string | null
  references: string[]
  body_text: string | null
  body_html: string | null
  /** The new part only: quotes and signature cut; HTML turned to Markdown when there is no text part. */
  text: string
  /** At most 200 characters of one line of plain text. */
  snippet: string
  /** Made by a program: RFC 3834 and the usual headers. */
  automated: boolean
  codes: string[]
  links: Link[]
  attachments: Attachment[]
  /** What another server reports in it; null when it is no report. */
  report: Report | null
  /** Why the message could only be read in part; null when all is well. */
  parse_error: string | null
}

/** What the store keeps of the bodies, as JSON. */
export type StoredBodies = Pick<Parsed, 'body_text' | 'body_html' | 'text'>
