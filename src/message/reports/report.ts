import { deliveryReport } from './delivery-report.ts'
import { dmarcReport } from './dmarc-report.ts'
import { firstValue, type HeaderField } from '../headers.ts'
import type { Mime } from '../mime/model.ts'
import { plainBounce, reasonFor } from './plain-bounce.ts'
import type { DeliveryReport, FeedbackReport, Report } from './reported.ts'
import { tlsReport } from './tls-report.ts'
import { unpacked } from './unpacked.ts'
import { bareAddress, fieldGroups, lineOf, returnedOf, textOf } from './field-groups.ts'

/** Attachments of one message that are decompressed to look for reports, and the bytes of all together. */
const maxFiles = 2
const maxDecompressed = 10 * 1024 * 1024

/** The report in a message; null when there is none, or when it cannot be read. Never throws. */
export function reportOf(fields: readonly HeaderField[], mail: Mime): Report | null {
  try {
    return feedbackReport(mail) ?? notificationOf(mail) ?? aggregateOf(fields, mail) ?? plainBounce(fields, mail)
  } catch {
    // a message is stored even if its report cannot be read
    return null
  }
}

function notificationOf(mail: Mime): DeliveryReport | null {
  const report = deliveryReport(mail)
  for (const recipient of report?.recipients.slice(0, 10) ?? [])
    recipient.diagnostic ??= recipient.final_recipient && reasonFor(mail, recipient.final_recipient)
  return report
}

function aggregateOf(fields: readonly HeaderField[], mail: Mime): Report | null {
  const announced = /\breport[ _-]?(?:domain|id)\b/i.test((firstValue(fields, 'subject') ?? '').slice(0, 500))
  const files = mail.files.filter(
    ({ contentType, filename }) => announced || isReportFile(contentType, (filename || '').slice(0, 300)),
  )
  let left = maxDecompressed
  for (const file of files.slice(0, maxFiles)) {
    const text = left > 0 ? unpacked(file.content, left) : undefined
    left -= Buffer.byteLength(text ?? '')
    const report = text === undefined ? null : text.startsWith('{') ? tlsReport(text) : dmarcReport(text)
    if (report) return report
  }
  return null
}

/** True if name or type are those of an aggregate report: RFC 9990 3.5.1 (`receiver!domain!begin!end.xml.gz`), RFC 8460 5.1. */
function isReportFile(contentType: string, filename: string): boolean {
  return /^application\/tlsrpt\+/i.test(contentType) || /^[^!]+!.+!.*\.(?:xml|json|zip|gz)$|dmarc|\.xml(?:\.gz)?$/i.test(filename)
}

const maxRecipients = 20

/** The feedback report (RFC 5965) in a message; null when there is none. */
function feedbackReport(mail: Mime): FeedbackReport | null {
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
    original_recipients: recipients.slice(0, maxRecipients),
    source_ip: textOf(fields, 'source-ip'),
    returned: returnedOf(mail.files),
  }
}
