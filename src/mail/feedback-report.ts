import { bareAddress, fieldGroups, lineOf, returnedOf, textOf } from './field-groups.ts'
import type { Mime } from './mime.ts'
import type { FeedbackReport } from './reported.ts'

const mostRecipients = 20

/** The feedback report (RFC 5965) in a message; null when there is none. */
export function feedbackReport(mail: Mime): FeedbackReport | null {
  const part = mail.files.find(({ contentType }) => /^message\/feedback-report$/i.test(contentType))
  const fields = part ? fieldGroups(part.content).flat() : []
  const type = textOf(fields, 'feedback-type')
  if (type === null) return null
  const recipients = fields.flatMap(({ name, value }) => (name === 'original-rcpt-to' ? (bareAddress(lineOf(value)) ?? []) : []))
  return {
    kind: 'feedback',
    feedback_type: type.toLowerCase(),
    reporter: textOf(fields, 'user-agent'),
    original_mail_from: bareAddress(textOf(fields, 'original-mail-from')),
    original_recipients: recipients.slice(0, mostRecipients),
    source_ip: textOf(fields, 'source-ip'),
    returned: returnedOf(mail.files),
  }
}
