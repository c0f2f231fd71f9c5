/** What another server reports of mail of ours; every list is bounded, every text one line. */
export type Report = DeliveryReport | FeedbackReport | DmarcReport | TlsReport

/** What became of one message that we sent (RFC 3464), or the text that an old server writes for people. */
export interface DeliveryReport {
  kind: 'delivery'
  /** The server that reports. */
  reporter: string | null
  /** At most 100. */
  recipients: ReportedRecipient[]
  returned: Returned
}

export interface ReportedRecipient {
  action: 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded'
  /** The enhanced code (RFC 3463). */
  status: string | null
  smtp_code: number | null
  /** What the last server said, in words. */
  diagnostic: string | null
  final_recipient: string | null
  original_recipient: string | null
  /** The server that said so. */
  remote: string | null
}

/** What a report brings back of the message it is about. */
export interface Returned {
  message_id: string | null
  /** The address in Return-Path, without angle brackets. */
  return_path: string | null
}

/** A feedback report (RFC 5965): most often that a person called a message spam. */
export interface FeedbackReport {
  kind: 'feedback'
  /** Lower case: `abuse`, `fraud`, `not-spam`, … */
  feedback_type: string
  reporter: string | null
  original_mail_from: string | null
  /** At most 20. */
  original_recipients: string[]
  source_ip: string | null
  returned: Returned
}

/** An aggregate report on mail in a domain's name (RFC 9990, and RFC 7489 before it). */
export interface DmarcReport {
  kind: 'dmarc'
  reporter: string
  report_id: string
  /** Lower case. */
  domain: string
  begins_at: string | null
  ends_at: string | null
  policy: Record<string, string>
  /** At most 500; `rows_left_out` says how many there were besides. */
  rows: DmarcRow[]
  rows_left_out: number
  /** Messages of all rows: those aligned by DKIM or SPF, and the others. */
  pass: number
  fail: number
}

export interface DmarcRow {
  source_ip: string
  count: number
  disposition: string
  dkim: string
  spf: string
  header_from: string
}

/** A report on the TLS sessions of those who send to a domain (RFC 8460). */
export interface TlsReport {
  kind: 'tls'
  reporter: string
  report_id: string
  begins_at: string | null
  ends_at: string | null
  /** At most 100. */
  policies: TlsPolicyReport[]
}

export interface TlsPolicyReport {
  type: string
  /** Lower case. */
  domain: string
  successful: number
  failed: number
  /** At most 100. */
  failures: { result: string; count: number; sending_ip: string | null; receiving_mx: string | null; reason: string | null }[]
}
