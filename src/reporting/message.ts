import type { Kind } from './days.ts'

interface ReportMail {
  kind: Kind
  domain: string
  /** The reporting domain. */
  submitter: string
  from: string
  to: string
  reply_to: string
  report_id: string
  message_id: string
  /** RFC 5322 date-time. */
  date: string
  filename: string
  /** Compressed. */
  content: Buffer
  /** For people, ASCII. */
  text: string
}

/** The bytes of a report mail (RFC 9990 3.5.1, RFC 8460 5.3), with CRLF line ends. */
export function reportMail(mail: ReportMail): Buffer {
  const { kind, domain, submitter, report_id, filename } = mail
  const boundary = `report-${report_id.replaceAll(/[^\w-]/g, '-').slice(0, 60)}`
  const isTls = kind === 'tls'
  const head = [
    `From: <${mail.from}>`,
    `To: <${mail.to}>`,
    `Reply-To: <${mail.reply_to}>`,
    `Subject: Report Domain: ${domain}\r\n Submitter: ${submitter}\r\n Report-ID: <${report_id}>`,
    `Date: ${mail.date}`,
    `Message-ID: ${mail.message_id}`,
    'Auto-Submitted: auto-generated',
    ...(isTls ? [`TLS-Report-Domain: ${domain}`, `TLS-Report-Submitter: ${submitter}`] : []),
    'MIME-Version: 1.0',
    `Content-Type: ${isTls ? 'multipart/report; report-type="tlsrpt"' : 'multipart/mixed'};\r\n boundary="${boundary}"`,
  ]
  const parts = [
    ['Content-Type: text/plain; charset=us-ascii', '', mail.text],
    [
      `Content-Type: application/${isTls ? 'tlsrpt+gzip' : 'gzip'};\r\n name="${filename}"`,
      'Content-Transfer-Encoding: base64',
      `Content-Disposition: attachment;\r\n filename="${filename}"`,
      '',
      (mail.content.toString('base64').match(/.{1,76}/g) ?? []).join('\r\n'),
    ],
  ]
  const body = parts.map((lines) => `--${boundary}\r\n${lines.join('\r\n')}\r\n`).join('')
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}--${boundary}--\r\n`)
}
