import { deliveryReport } from './delivery-report.ts'
import { dmarcReport } from './dmarc-report.ts'
import { feedbackReport } from './feedback-report.ts'
import type { HeaderField } from './headers.ts'
import { firstValue } from './headers.ts'
import type { Mime } from './mime.ts'
import { plainBounce, wordsAbout } from './plain-bounce.ts'
import type { DeliveryReport, Report } from './reported.ts'
import { tlsReport } from './tls-report.ts'
import { unpacked } from './unpacked.ts'

/** Files of one message that are unpacked to see whether they are reports. */
const mostFiles = 2

/** The report that a message is; null when it is none, or cannot be read. Never throws. */
export function reportOf(fields: readonly HeaderField[], mail: Mime): Report | null {
  try {
    return feedbackReport(mail) ?? notificationOf(mail) ?? aggregateOf(fields, mail) ?? plainBounce(fields, mail)
  } catch {
    // a message is kept whatever becomes of its report
    return null
  }
}

function notificationOf(mail: Mime): DeliveryReport | null {
  const report = deliveryReport(mail)
  for (const recipient of report?.recipients.slice(0, 10) ?? [])
    recipient.diagnostic ??= recipient.final_recipient && wordsAbout(mail, recipient.final_recipient)
  return report
}

function aggregateOf(fields: readonly HeaderField[], mail: Mime): Report | null {
  const announced = /\breport[ _-]?(?:domain|id)\b/i.test((firstValue(fields, 'subject') ?? '').slice(0, 500))
  const files = mail.files.filter(
    ({ contentType, filename }) => announced || isNamedSo(contentType, (filename || '').slice(0, 300)),
  )
  for (const file of files.slice(0, mostFiles)) {
    const text = unpacked(file.content)
    const report = text === undefined ? null : text.startsWith('{') ? tlsReport(text) : dmarcReport(text)
    if (report) return report
  }
  return null
}

/** RFC 9990 3.5.1 (`receiver!domain!begin!end.xml.gz`), RFC 8460 5.1: what has another name and type is not worth unpacking. */
function isNamedSo(contentType: string, filename: string): boolean {
  return /^application\/tlsrpt\+/i.test(contentType) || /^[^!]+!.+!.*\.(?:xml|json|zip|gz)$|dmarc|\.xml(?:\.gz)?$/i.test(filename)
}
