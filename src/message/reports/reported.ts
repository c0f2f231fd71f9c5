/** A report of another server on our mail. Every list is bounded, every text is one line. */
export type Report = DeliveryReport | FeedbackReport | DmarcReport | TlsReport

/** The delivery status of one message that we sent (RFC 3464), or a plain-text bounce. */
export interface DeliveryReport {
  kind: 'delivery'
  /** The reporting server. */
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
  /** The reply text of the last server. */
  diagnostic: string | null
  final_recipient: string | null
  original_recipient: string | null
  /** The server that sent this reply. */
  remote: string | null
}

/** The identification of the returned message. */
export interface Returned {
  message_id: string | null
  /** The address in Return-Path, without angle brackets. */
  return_path: string | null
}

/** A feedback report (RFC 5965): mostly that a recipient marked a message as spam. */
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

/** A DMARC aggregate report on a domain (RFC 9990, formerly RFC 7489). */
export interface DmarcReport {
  kind: 'dmarc'
  reporter: string
  report_id: string
  /** Lower-case A-labels. */
  domain: string
  begins_at: string | null
  ends_at: string | null
  policy: Record<string, string>
  /** At most 500, and 64 KiB as JSON; `rows_left_out` is the number of further rows. */
  rows: DmarcRow[]
  rows_left_out: number
  /** Messages in all rows that were aligned by DKIM or SPF, and those that were not. */
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

/** A report on TLS sessions of a server that sends to a domain (RFC 8460). */
export interface TlsReport {
  kind: 'tls'
  reporter: string
  report_id: string
  begins_at: string | null
  ends_at: string | null
  /** At most 100; with their failures 64 KiB as JSON. */
  policies: TlsPolicyReport[]
}

export interface TlsPolicyReport {
  type: string
  /** Lower-case A-labels. */
  domain: string
  successful: number
  failed: number
  /** At most 100. */
  failures: { result: string; count: number; sending_ip: string | null; receiving_mx: string | null; reason: string | null }[]
}
