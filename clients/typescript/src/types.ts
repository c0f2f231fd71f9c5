// Printed by `npm run docs` from the declarations of the box. Not to be changed by hand.

/** Any JSON. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }

/** The answer of every list. */
export interface Page<Row> {
  data: Row[]
  has_more: boolean
  next_cursor: string | null
}

export interface Account {
  id: string
  name: string
  /** the address used to sign in */
  email: string | null
  password_set: boolean
  /** whether signing in requires a second factor */
  totp_enabled: boolean
  recovery_codes_left: number
  /** since when it is stopped */
  stopped_at: string | null
  created_at: string
}

export interface AccountWish {
  /** unique without regard to case */
  name: string
  /** the address used to sign in */
  email: string
  /** 8 to 256 characters, none of the most common */
  password: string
}

export interface Address {
  address: string
  name: string
}

export interface Agent {
  id: string
  identity_id: string
  /** unique on this box, never reused */
  handle: string
  display_name: string
  description: string | null
  avatar_url: string | null
  capabilities: string[]
  links: {
    name: string
    url: string
  }[]
  metadata: Record<string, Json>
  /** did:web, resolved at /v1/agents/{id}/did.json */
  did: string
  /** the status of its identity */
  status: 'active' | 'suspended'
  created_at: string
  updated_at: string
}

export interface AgentChange {
  /** the previous handle remains reserved for the agent, which can return to it */
  handle?: string | undefined
  display_name?: string | undefined
  description?: string | null | undefined
  avatar_url?: string | null | undefined
  /** replaces the list */
  capabilities?: string[] | undefined
  /** replaces the list */
  links?: {
    name: string
    url: string
  }[] | undefined
  /** merged; null removes a key (RFC 7396) */
  metadata?: Record<string, Json> | undefined
}

export interface Alias {
  id: string
  domain_id: string
  /** also receives with a tag: local_part+tag */
  address: string
  local_part: string
  /** the identity that receives its mail and may send from it */
  identity_id: string
  created_at: string
}

export interface AliasChange {
  /** the identity that receives its mail from now on */
  identity_id?: string | undefined
}

export interface ApiKey {
  id: string
  label: string
  scopes: Scope[]
  /** the first characters, to tell keys apart */
  key_prefix: string
  /** the one identity the key is bound to */
  identity_id: string | null
  /** calls a minute, of this key and the keys it created together; 0 is no limit */
  rate_limit: number
  created_at: string
  /** the key or session that created it; null if it was created on the machine of the box, or before this was recorded */
  created_by: string | null
  /** the key or session that last gave it a new secret, if not the key itself */
  rotated_by: string | null
  last_used_at: string | null
  expires_at: string | null
  revoked_at: string | null
}

export interface ApiKeyWithSecret {
  id: string
  label: string
  scopes: Scope[]
  /** the first characters, to tell keys apart */
  key_prefix: string
  /** the one identity the key is bound to */
  identity_id: string | null
  /** calls a minute, of this key and the keys it created together; 0 is no limit */
  rate_limit: number
  created_at: string
  /** the key or session that created it; null if it was created on the machine of the box, or before this was recorded */
  created_by: string | null
  /** the key or session that last gave it a new secret, if not the key itself */
  rotated_by: string | null
  last_used_at: string | null
  expires_at: string | null
  revoked_at: string | null
  /** returned only once */
  key: string
}

export interface Attachment {
  index: number
  filename: string
  content_type: string
  /** decoded size in bytes */
  size: number
  content_id: string | null
  disposition: 'attachment' | 'inline'
  sha256: string
}

export interface AttachmentText {
  index: number
  filename: string
  /** by its content; the declared type and the name only tell texts apart */
  format: 'pdf' | 'docx' | 'xlsx' | 'html' | 'csv' | 'text'
  /** of HTML as Markdown; of a sheet a line for each row, with tabs between its cells */
  text: string
  /** where text begins, in characters */
  offset: number
  /** where the next piece begins; null after the last */
  next_offset: number | null
  /** of the whole text */
  characters: number
  /** of a PDF; null for other formats */
  pages: number | null
  /** true if the attachment has more text than can be read, beyond the last offset */
  truncated: boolean
}

export interface AttachmentWithUrl {
  index: number
  filename: string
  content_type: string
  /** decoded size in bytes */
  size: number
  content_id: string | null
  disposition: 'attachment' | 'inline'
  sha256: string
  /** usable without a key until it expires */
  url: string
  expires_at: string
}

export interface AuditRow {
  /** its place in the log of the whole box */
  seq: number
  account_id: string
  at: string
  /** the id of a key or person; operator for commands on the machine of the box, anonymous for callers without a key */
  actor: string
  /** the id of the OAuth client, mcp for another client of /mcp, smtp for programs that submit mail, socket for commands; null for a plain call */
  client: string | null
  /** the network address of the caller */
  address: string | null
  action: string
  /** the id of what it was done to */
  target: string | null
  identity_id: string | null
  /** how many times, for reads and refusals that were repeated */
  count: number
  detail: Record<string, Json>
  /** SHA-256 of the row before and this one, in hex */
  hash: string
}

export interface Authentication {
  spf: {
    result: AuthenticationResult
    domain: string | null
    reason: string | null
  }
  dkim: {
    result: AuthenticationResult
    domain: string
    selector: string
    algorithm: string | null
    aligned: boolean
    reason: string | null
    /** header fields of which the signature covers all instances, in lower case; at most 50 */
    signed_fields: string[]
  }[]
  dmarc: {
    result: AuthenticationResult
    domain: string | null
    policy: 'none' | 'quarantine' | 'reject' | null
    aligned_by: ('spf' | 'dkim')[]
    reason: string | null
  }
  arc: {
    result: AuthenticationResult
    chain: number
    reason: string | null
  }
}

export type AuthenticationResult = 'pass' | 'fail' | 'softfail' | 'neutral' | 'none' | 'temperror' | 'permerror' | 'policy'

/** Auto-Submitted (RFC 3834): whether a program sent it automatically */
export type AutoSubmitted = 'no' | 'auto-generated' | 'auto-replied'

export interface Backup {
  /** name of its file in backup.directory */
  name: string
  /** bytes */
  size: number
  box_id: string
  /** the time of its state */
  created_at: string
  program_version: string
  database_version: number
  /** whether it contains the keys, encrypted with a passphrase */
  keys: boolean
  /** number of rows of each table */
  rows: Record<string, number>
}

export interface Budget {
  amount: number
  currency: string
  period: Period
}

export interface BulkChange {
  /** the e-mails to change; not together with search */
  ids?: string[] | undefined
  /** changes what GET …/emails/search finds with these, newest first; needs a scope to read too */
  search?: {
    unread?: boolean | undefined
    /** part of the sender’s address or name */
    from?: string | undefined
    /** part of a recipient address */
    to?: string | undefined
    /** received after this time */
    after?: string | undefined
    /** received before this time */
    before?: string | undefined
    /** default inbound, as in the list */
    direction?: 'inbound' | 'outbound' | 'all' | undefined
    /** words, "phrases", prefix*, -not, from:, subject:, has:attachment */
    query?: string | undefined
    /** the same as query */
    q?: string | undefined
  } | undefined
  /** the most e-mails that a search changes in this call */
  limit?: number | undefined
  /** the next_cursor of the call before, with the same search */
  cursor?: string | undefined
  read?: boolean | undefined
  unread?: boolean | undefined
  labels?: {
    add?: string[] | undefined
    remove?: string[] | undefined
  } | undefined
  /** moves them to the trash */
  delete?: boolean | undefined
  /** deletes them permanently; ids may be in the trash */
  purge?: boolean | undefined
}

export interface BulkResult {
  /** the e-mails that are now as asked for, also those that were so before */
  changed: string[]
  /** the ids that name no e-mail here */
  not_found: string[]
  /** the e-mails that are as they were, with the reason: more labels than an e-mail can have */
  failed: {
    id: string
    code: string
    message: string
  }[]
  /** whether the search finds more: call again with next_cursor as cursor */
  has_more: boolean
  next_cursor: string | null
}

export interface Card {
  id: string
  identity_id: string
  last4: string
  brand: string
  exp_month: number
  exp_year: number
  /** in minor units of the currency */
  budget_cents: number
  /** in this period: reserved by reveals, or reported */
  spent_cents: number
  status: 'active' | 'frozen' | 'cancelled'
  card_name: string
  /** the same as card_name */
  label: string
  /** the same as budget_cents, currency and period */
  budget: Budget
  currency: string
  period: Period
  created_at: string
  updated_at: string
}

export interface CardLimits {
  card_id: string
  budget_cents: number
  spent_cents: number
  /** budget minus spent; below 0 if more was reported than budgeted */
  remaining_cents: number
  status: 'active' | 'frozen' | 'cancelled'
  period: Period
  currency: string
  /** time at which spent_cents is reset to 0; null for one_time */
  resets_at: string | null
}

export interface CardRevealed {
  id: string
  identity_id: string
  last4: string
  brand: string
  exp_month: number
  exp_year: number
  /** in minor units of the currency */
  budget_cents: number
  /** in this period: reserved by reveals, or reported */
  spent_cents: number
  status: 'active' | 'frozen' | 'cancelled'
  card_name: string
  /** the same as card_name */
  label: string
  /** the same as budget_cents, currency and period */
  budget: Budget
  currency: string
  period: Period
  created_at: string
  updated_at: string
  transaction: CardTransaction
}

export interface CardTransaction {
  id: string
  card_id: string
  type: 'reveal' | 'report' | 'refund' | 'reset'
  /** null for a reveal without an amount */
  amount_cents: number | null
  allowed: boolean
  /** why a reveal was rejected; held: a person must approve it first; repeated: returned again for the same Idempotency-Key, without a charge */
  reason: 'card_frozen' | 'card_cancelled' | 'budget_exceeded' | 'policy_refused' | 'held' | 'repeated' | null
  /** the reveal that this transaction reports, refunds or repeats */
  reveal_id: string | null
  /** of the card, after this transaction */
  spent_cents: number
  key_id: string | null
  ip: string
  user_agent: string
  purpose: string | null
  description: string | null
  created_at: string
}

export interface Certificate {
  /** the services that use it: mail is SMTP (STARTTLS and submission), api the REST API; empty while unused */
  uses: ('mail' | 'api')[]
  /** files named in the settings, obtained by ACME, or self-signed */
  source: 'file' | 'acme' | 'self_signed'
  /** the host names it contains, or should contain */
  names: string[]
  /** its path on the box */
  file: string
  /** null while there is none */
  issuer: string | null
  /** SHA-256, in hexadecimal */
  fingerprint: string | null
  not_before: string | null
  not_after: string | null
  /** time from which ACME requests the next one */
  renew_at: string | null
  /** time of the last request to the CA */
  tried_at: string | null
  /** after a failure */
  next_try_at: string | null
  /** why there is none, or none newer: the fault of the files, or the error of the CA */
  problem: string | null
}

export interface CertificateRenewal {
  /** a host name: its certificate is renewed even if it is not due */
  name?: string | undefined
}

export interface Credential {
  /** a Verifiable Credential (VC 2.0) as a JWT, type vc+jwt */
  credential: string
  expires_at: string
}

export interface Deleted {
  id: string
  deleted: true
}

export interface Delivery {
  recipient: string
  status: EmailStatus
  /** SMTP code of the last reply (RFC 5321 4.2) */
  smtp_code: number | null
  /** enhanced status code of the last reply (RFC 3463) */
  enhanced_code: string | null
  /** the last reply, or the reason why there was none */
  response: string | null
  /** the last server contacted */
  mx: string | null
  /** version and cipher, and whether the certificate was verified; null without TLS */
  tls: string | null
  attempts: number
  next_attempt_at: string | null
  delivered_at: string | null
}

export interface DeliveryAttempt {
  number: number
  started_at: string
  ended_at: string | null
  outcome: 'delivered' | 'sent' | 'deferred' | 'bounced' | 'failed' | 'interrupted' | 'pending'
  response: string | null
  mx: string | null
  tls: string | null
}

export interface DnsRecord {
  purpose: 'mx' | 'spf' | 'dkim' | 'dmarc' | 'mta_sts' | 'tls_rpt'
  /** whether verification requires this record */
  required: boolean
  type: 'MX' | 'TXT' | 'CNAME'
  /** without a trailing dot */
  name: string
  value: string
  /** the preference of an MX record */
  priority?: number | undefined
  /** seconds */
  ttl: number
  status: 'missing' | 'invalid' | 'valid'
  /** the first ten values found in the DNS, shortened to 3 KB together; control characters as \DDD */
  found: string[]
  /** what is wrong, and the correct value */
  reason: string | null
  /** whether the last lookup failed: the other fields are from an earlier one */
  unanswered: boolean
  /** time of the last DNS answer; null if there was none, or it was not recorded */
  seen_at: string | null
}

export interface DoctorChange {
  /** the check: config, disk, mx, … (docs/troubleshooting.md) */
  name: string
  /** the object checked: a path, a domain, an address */
  subject: string
  status: 'pass' | 'warn' | 'fail'
  /** the finding */
  message: string
  /** the remedy, verbatim: a command, a setting, a DNS record */
  fix: string | null
  /** of several boxes on one database, the one whose machine was checked; absent for what all have */
  box?: string | undefined
  /** its status before; null for a new line */
  before: 'pass' | 'warn' | 'fail' | null
  since: string
}

export interface DoctorLine {
  /** the check: config, disk, mx, … (docs/troubleshooting.md) */
  name: string
  /** the object checked: a path, a domain, an address */
  subject: string
  status: 'pass' | 'warn' | 'fail'
  /** the finding */
  message: string
  /** the remedy, verbatim: a command, a setting, a DNS record */
  fix: string | null
  /** of several boxes on one database, the one whose machine was checked; absent for what all have */
  box?: string | undefined
  /** time since which it has this status */
  since: string
  checked_at: string
}

export interface DoctorReport {
  /** the worst status of the lines */
  status: 'pass' | 'warn' | 'fail'
  pass: number
  warn: number
  fail: number
  /** time of the last check; null before the first */
  checked_at: string | null
  lines: DoctorLine[]
}

export interface Domain {
  id: string
  /** lower-case A-labels */
  name: string
  status: 'pending' | 'verified'
  /** whether this is mail.domain, the domain of new addresses */
  default: boolean
  /** the identity that receives mail for unknown addresses of the domain */
  catch_all: string | null
  dns_records: DnsRecord[]
  created_at: string
  verified_at: string | null
  last_checked_at: string | null
}

export interface DomainChange {
  /** the identity that receives mail for unknown addresses of the domain; null rejects such mail */
  catch_all?: string | null | undefined
}

export interface DomainReport {
  kind: 'dmarc' | 'tls'
  reporter: string
  report_id: string
  begins_at: string | null
  ends_at: string | null
  received_at: string
  /** dmarc: {policy, rows[{source_ip, count, disposition, dkim, spf, header_from}], pass, fail}; tls: {policies[{type, domain, successful, failed, failures[]}]} */
  data: Record<string, Json>
}

export interface Email {
  id: string
  identity_id: string
  thread_id: string
  direction: 'inbound' | 'outbound'
  status: EmailStatus
  from: string
  from_name: string
  to: string
  subject: string
  snippet: string
  read: boolean
  spam: boolean
  /** whether the message claims to be generated by a program; not authenticated */
  automated: boolean
  /** the part after + in the recipient address */
  tag: string | null
  labels: string[]
  size: number
  has_attachments: boolean
  verified_domain: string | null
  message_id: string | null
  in_reply_to: string | null
  codes: string[]
  received_at: string
  /** when the first server of a recipient, or a relay, accepted it */
  sent_at: string | null
  created_at: string
  /** time of deletion; only in the trash */
  deleted_at?: string | undefined
  body_text: string | null
  body_html: string | null
  text: string
  references: string[]
  reply_to: string | null
  /** whether verified_domain also covers reply_to; false: a forwarder may have added it, and reply goes to from unless specified; null when there is no reply_to, or from is not verified */
  reply_to_verified: boolean | null
  cc: Address[]
  bcc: Address[]
  recipients: {
    to: Address[]
    cc: Address[]
    bcc: Address[]
  }
  body_truncated?: boolean | undefined
  links: Link[]
  attachments: Attachment[]
  authentication: Authentication | null
  /** what is hidden in a received message or instructs its reader; null for others, and for messages of older versions */
  screening: Screening | null
  /** why a received message was set aside, until it is released */
  set_aside: 'blocked_sender' | 'unlisted_sender' | 'unverified_sender' | 'suspicious' | null
  /** of an outbound message held for a person; null for others */
  hold: HoldState | null
  parse_error: string | null
  /** time at which a scheduled message is sent */
  send_at: string | null
  /** the key or session that sent or scheduled an outbound message; null for others, and for messages of older versions */
  created_by: string | null
  /** one for each recipient of an outbound message; history is included when the e-mail is read alone, for 30 days */
  deliveries: EmailDelivery[]
  /** the earlier e-mail with the same envelope and content, within 24 h (RFC 1047) */
  duplicate_of: string | null
}

export interface EmailChange {
  read?: boolean | undefined
  unread?: boolean | undefined
  labels?: {
    add?: string[] | undefined
    remove?: string[] | undefined
  } | undefined
  /** a new time, while it is scheduled */
  send_at?: string | undefined
}

export interface EmailDelivery {
  recipient: string
  status: EmailStatus
  /** SMTP code of the last reply (RFC 5321 4.2) */
  smtp_code: number | null
  /** enhanced status code of the last reply (RFC 3463) */
  enhanced_code: string | null
  /** the last reply, or the reason why there was none */
  response: string | null
  /** the last server contacted */
  mx: string | null
  /** version and cipher, and whether the certificate was verified; null without TLS */
  tls: string | null
  attempts: number
  next_attempt_at: string | null
  delivered_at: string | null
  history?: DeliveryAttempt[] | undefined
}

export interface EmailMessage {
  id: string
  identity_id: string
  thread_id: string
  direction: 'inbound' | 'outbound'
  status: EmailStatus
  from: string
  from_name: string
  to: string
  subject: string
  snippet: string
  read: boolean
  spam: boolean
  /** whether the message claims to be generated by a program; not authenticated */
  automated: boolean
  /** the part after + in the recipient address */
  tag: string | null
  labels: string[]
  size: number
  has_attachments: boolean
  verified_domain: string | null
  message_id: string | null
  in_reply_to: string | null
  codes: string[]
  received_at: string
  /** when the first server of a recipient, or a relay, accepted it */
  sent_at: string | null
  created_at: string
  /** time of deletion; only in the trash */
  deleted_at?: string | undefined
  body_text: string | null
  body_html: string | null
  text: string
  references: string[]
  reply_to: string | null
  /** whether verified_domain also covers reply_to; false: a forwarder may have added it, and reply goes to from unless specified; null when there is no reply_to, or from is not verified */
  reply_to_verified: boolean | null
  cc: Address[]
  bcc: Address[]
  recipients: {
    to: Address[]
    cc: Address[]
    bcc: Address[]
  }
  body_truncated?: boolean | undefined
  links: Link[]
  attachments: Attachment[]
  authentication: Authentication | null
  /** what is hidden in a received message or instructs its reader; null for others, and for messages of older versions */
  screening: Screening | null
  /** why a received message was set aside, until it is released */
  set_aside: 'blocked_sender' | 'unlisted_sender' | 'unverified_sender' | 'suspicious' | null
  /** of an outbound message held for a person; null for others */
  hold: HoldState | null
  parse_error: string | null
  /** time at which a scheduled message is sent */
  send_at: string | null
  /** the key or session that sent or scheduled an outbound message; null for others, and for messages of older versions */
  created_by: string | null
  /** one for each recipient of an outbound message; history is included when the e-mail is read alone, for 30 days */
  deliveries: EmailDelivery[]
  /** the earlier e-mail with the same envelope and content, within 24 h (RFC 1047) */
  duplicate_of: string | null
  type: 'email'
}

export interface EmailRow {
  id: string
  identity_id: string
  thread_id: string
  direction: 'inbound' | 'outbound'
  status: EmailStatus
  from: string
  from_name: string
  to: string
  subject: string
  snippet: string
  read: boolean
  spam: boolean
  /** whether the message claims to be generated by a program; not authenticated */
  automated: boolean
  /** the part after + in the recipient address */
  tag: string | null
  labels: string[]
  size: number
  has_attachments: boolean
  verified_domain: string | null
  message_id: string | null
  in_reply_to: string | null
  codes: string[]
  received_at: string
  /** when the first server of a recipient, or a relay, accepted it */
  sent_at: string | null
  created_at: string
  /** time of deletion; only in the trash */
  deleted_at?: string | undefined
  /** only with include=body */
  body_text?: string | null | undefined
  /** only with include=body */
  body_html?: string | null | undefined
  /** only with include=body */
  text?: string | undefined
}

export type EmailStatus = 'received' | 'held' | 'scheduled' | 'queued' | 'sending' | 'sent' | 'delivered' | 'deferred' | 'bounced' | 'failed' | 'cancelled'

export interface Emptied {
  id: string
  /** number of deleted e-mails and text messages */
  purged: number
}

/** number of objects created by the key that ended; 0 with keep; holds are those of text messages and cards */
export interface EndedWithKey {
  api_keys: number
  webhooks: number
  jobs: number
  scheduled_emails: number
  holds: number
}

export interface Erc8004Link {
  id: string
  chain_id: number
  /** the address of the identity registry, with its checksum (EIP-55) */
  registry: string
  /** decimal; up to 256 bits */
  token_id: string
  owner_address?: string | undefined
  tx_hash?: string | undefined
  /** the box does not query any chain: clients must check the registry themselves */
  status: 'unverified'
  created_at: string
}

export interface ExportWish {
  /** format of the messages: all in messages.mbox, or each in a separate file below eml/ */
  format?: 'mbox' | 'eml' | undefined
}

/** additional header fields, at most 100 and 64 KiB in total; not those that the box sets */
export type HeaderFields = Record<string, string>

export interface HeldCard {
  id: string
  identity_id: string
  last4: string
  brand: string
  exp_month: number
  exp_year: number
  /** in minor units of the currency */
  budget_cents: number
  /** in this period: reserved by reveals, or reported */
  spent_cents: number
  status: 'active' | 'frozen' | 'cancelled'
  card_name: string
  /** the same as card_name */
  label: string
  /** the same as budget_cents, currency and period */
  budget: Budget
  currency: string
  period: Period
  created_at: string
  updated_at: string
  /** to be reserved; null for a reveal without an amount */
  amount_cents: number | null
  purpose: string | null
  /** when the approved reveal took place */
  used_at: string | null
  hold: HoldState
}

export interface HeldLogin {
  id: string
  identity_id: string
  label: string
  url: string | null
  has_password: boolean
  has_api_key: boolean
  has_notes: boolean
  /** the one-time password that goes with it */
  totp_id: string | null
  created_at: string
  updated_at: string
  /** of the url */
  host: string | null
  purpose: string | null
  /** when the approved reveal took place */
  used_at: string | null
  hold: HoldState
}

export interface Hold {
  id: string
  status: 'open' | 'approved' | 'rejected' | 'expired' | 'cancelled'
  /** rejected then */
  expires_at: string
  decided_at: string | null
  /** of the decision */
  reason: string | null
  kind: 'email' | 'sms' | 'card' | 'login'
  identity_id: string
  /** the id of the e-mail, of the text message, of the card, or of the login */
  about: string
  /** the key that sent it, or that wants to reveal the card or login */
  created_by: string | null
  created_at: string
  /** the key or person that decided; null for the operator, and for none */
  decided_by: string | null
  /** in hexadecimal: of the bytes of an e-mail; of a text message: to, a line end and body; of a card: its id, amount_cents and purpose, with line ends between; of a login: its id, label, url, place, updated_at and purpose */
  sha256: string
  reasons: {
    /** whose policy: of pillarbox.yaml, of the account, of the identity */
    level: 'box' | 'account' | 'identity'
    action: 'send' | 'hold' | 'refuse'
    /** its place among the rules, from 0; null for the preset */
    rule: number | null
    recipient: string | null
    /** it looks at what a scan finds, and the message could not be scanned */
    unscanned?: true | undefined
  }[]
  found: {
    kind: 'secret' | 'key' | 'card' | 'code' | 'unread'
    /** subject, body_text, body_html, text, the name of an attachment, or body of a text message */
    place: string
    /** its first characters */
    sample: string
  }[]
  /** as it would be sent; null once it was deleted */
  email: Email | null
  /** as it would be sent; null once it was deleted */
  sms: Sms | null
  /** what would be revealed; null once it was deleted */
  card: HeldCard | null
  /** what would be revealed; null once it was deleted */
  login: HeldLogin | null
}

export interface HoldRow {
  id: string
  status: 'open' | 'approved' | 'rejected' | 'expired' | 'cancelled'
  /** rejected then */
  expires_at: string
  decided_at: string | null
  /** of the decision */
  reason: string | null
  kind: 'email' | 'sms' | 'card' | 'login'
  identity_id: string
  /** the id of the e-mail, of the text message, of the card, or of the login */
  about: string
  /** the key that sent it, or that wants to reveal the card or login */
  created_by: string | null
  created_at: string
  /** the key or person that decided; null for the operator, and for none */
  decided_by: string | null
  /** in hexadecimal: of the bytes of an e-mail; of a text message: to, a line end and body; of a card: its id, amount_cents and purpose, with line ends between; of a login: its id, label, url, place, updated_at and purpose */
  sha256: string
  reasons: {
    /** whose policy: of pillarbox.yaml, of the account, of the identity */
    level: 'box' | 'account' | 'identity'
    action: 'send' | 'hold' | 'refuse'
    /** its place among the rules, from 0; null for the preset */
    rule: number | null
    recipient: string | null
    /** it looks at what a scan finds, and the message could not be scanned */
    unscanned?: true | undefined
  }[]
  found: {
    kind: 'secret' | 'key' | 'card' | 'code' | 'unread'
    /** subject, body_text, body_html, text, the name of an attachment, or body of a text message */
    place: string
    /** its first characters */
    sample: string
  }[]
}

export interface HoldState {
  id: string
  status: 'open' | 'approved' | 'rejected' | 'expired' | 'cancelled'
  /** rejected then */
  expires_at: string
  decided_at: string | null
  /** of the decision */
  reason: string | null
}

export interface Identity {
  id: string
  name: string
  /** permanent; renaming does not change it */
  email: string
  phone_number?: string | undefined
  date_of_birth: string
  status: 'active' | 'suspended'
  metadata: Record<string, Json>
  /** omitted in events */
  storage?: Storage | undefined
  /** whether mail can be sent to addresses that are not on this box; omitted in events */
  can_send_outside?: boolean | undefined
  /** why not, and who can change that; null if it can; omitted in events */
  cannot_send_outside_reason?: string | null | undefined
  /** when it is deleted; null: when someone deletes it */
  expires_at: string | null
  created_at: string
  updated_at: string
}

export interface IdentityChange {
  name?: string | undefined
  display_name?: string | undefined
  /** merged; null removes a key (RFC 7396) */
  metadata?: Record<string, Json> | undefined
  date_of_birth?: string | undefined
  status?: 'active' | 'suspended' | undefined
  expires_at?: string | null | undefined
}

export interface IdentityToken {
  /** a JWT signed with EdDSA */
  token: string
  expires_at: string
}

export interface InjectedSms {
  from: string
  to: string
  body: string
  media?: {
    content_type: string
    content: string
  }[] | undefined
}

export interface Job {
  id: string
  /** export, import, … */
  kind: string
  identity_id: string | null
  status: 'running' | 'done' | 'failed' | 'cancelled'
  progress: {
    done: number
    /** null while unknown */
    total: number | null
    /** the unit: messages, octets, … */
    unit: string
  }
  /** the result, once it is done */
  result: Record<string, Json> | null
  error: {
    message: string
    /** a stable machine-readable code, such as import_too_large */
    code: string | null
  } | null
  created_at: string
  /** the key or session that created it; null if it was created on the machine of the box, or before this was recorded */
  created_by: string | null
  finished_at: string | null
}

export interface KeyRevoked {
  id: string
  deleted: true
  ended: EndedWithKey
}

export interface KeyRotated {
  /** the key that signs from now on */
  kid: string
  replaced_all: boolean
}

export interface KeyRotation {
  /** replaces all keys immediately because they may have leaked; everything they signed becomes invalid */
  now?: boolean | undefined
}

export interface LimitsChange {
  budget_cents?: number | undefined
  /** can be changed only while nothing is spent */
  currency?: string | undefined
  period?: Period | undefined
  /** the same as budget_cents, currency and period */
  budget?: {
    amount?: number | undefined
    /** ISO 4217, stored in lower case */
    currency?: string | undefined
    period?: Period | undefined
  } | undefined
  /** true resets spent_cents to 0 */
  reset_spent?: boolean | undefined
  /** the same as reset_spent */
  reset_spend?: boolean | undefined
}

/** A link of the message and its likely purpose */
export interface Link {
  url: string
  text: string
  kind: 'verify' | 'reset' | 'signin' | 'unsubscribe' | 'other'
}

/** a login without its user name */
export interface LoginNoted {
  id: string
  identity_id: string
  label: string
  url: string | null
  has_password: boolean
  has_api_key: boolean
  has_notes: boolean
  /** the one-time password that goes with it */
  totp_id: string | null
  created_at: string
  updated_at: string
}

export type Message = EmailMessage | SmsMessage

export interface NewAgent {
  /** the identity of the agent; an identity has at most one agent */
  identity_id: string
  /** 2 to 39 of a-z, 0-9 and hyphen, in either case; unique on this box, never reused. Derived from the identity’s name if omitted */
  handle?: string | undefined
  /** the identity’s name if omitted */
  display_name?: string | undefined
  /** its purpose, at most 2000 characters; public */
  description?: string | null | undefined
  avatar_url?: string | null | undefined
  /** its capabilities, as free text */
  capabilities?: string[] | undefined
  /** links to more information; https only */
  links?: {
    name: string
    url: string
  }[] | undefined
  /** free-form, at most 16 KiB; not public */
  metadata?: Record<string, Json> | undefined
}

export interface NewAlias {
  /** the part before the @ */
  local_part: string
  /** an identity of the account */
  identity_id: string
}

export interface NewApiKey {
  label?: string | undefined
  /** all scopes of the caller but holds:decide if omitted */
  scopes?: Scope[] | undefined
  /** binds the key to this identity: it sees and does nothing outside of it */
  identity_id?: string | undefined
  /** calls a minute, of this key and the keys it creates; 0 is no limit */
  rate_limit?: number | undefined
  /** never if omitted */
  expires_at?: string | undefined
}

export interface NewAttachment {
  filename: string
  /** derived from the name if omitted */
  content_type?: string | undefined
  /** base64 */
  content?: string | undefined
  /** fetched during the call, instead of content; https, public addresses only */
  url?: string | undefined
  /** for an inline image: <img src="cid:…"> */
  content_id?: string | undefined
}

export interface NewCard {
  /** base64 (also for URLs, without padding, with line breaks) of nonce, ciphertext and tag of AES-256-GCM under the card key, which the box never receives */
  encrypted_data: string
  last4: string
  /** kept in lower case */
  brand: string
  exp_month: number
  /** four digits, not in the past */
  exp_year: number
  /** required, here or as label */
  card_name?: string | undefined
  /** the same as card_name */
  label?: string | undefined
  /** in minor units of the currency; required here or in budget */
  budget_cents?: number | undefined
  /** ISO 4217, stored in lower case; default usd */
  currency?: string | undefined
  /** when spent_cents is reset to 0: default one_time (never); in UTC, weeks start on Monday */
  period?: Period | undefined
  /** the same as budget_cents, currency and period */
  budget?: {
    amount: number
    /** ISO 4217, stored in lower case */
    currency?: string | undefined
    period?: Period | undefined
  } | undefined
}

export interface NewDomain {
  name?: string | undefined
  /** the same as name */
  domain?: string | undefined
  /** the same as name */
  domain_name?: string | undefined
}

export interface NewEmail {
  to: Recipients
  cc?: Recipients | undefined
  bcc?: Recipients | undefined
  subject?: string | undefined
  /** the e-mail to reply to */
  in_reply_to?: string | undefined
  /** an address of the identity: its own, an alias, or any of a domain whose catch-all it is. Default: the address that received the e-mail replied to, else its own */
  from?: string | undefined
  body_text?: string | undefined
  /** the same as body_text */
  body?: string | undefined
  body_html?: string | undefined
  reply_to?: Recipients | undefined
  headers?: HeaderFields | undefined
  attachments?: NewAttachment[] | undefined
  labels?: string[] | undefined
  /** not before this time, at most a year ahead */
  send_at?: string | undefined
  auto_submitted?: AutoSubmitted | undefined
  /** sends only over verified TLS at every hop (REQUIRETLS, RFC 8689); otherwise it bounces */
  require_tls?: boolean | undefined
}

export interface NewErc8004Link {
  /** of an EVM chain: 1, or "eip155:1" */
  chain_id: number | string
  /** the identity registry; letters all of one case, or with the right checksum (EIP-55) */
  registry: string
  /** the agentId of the registry, in decimal */
  token_id: string | number
  owner_address?: string | undefined
  /** the transaction that registered it */
  tx_hash?: string | undefined
}

export interface NewForward {
  to: Recipients
  cc?: Recipients | undefined
  bcc?: Recipients | undefined
  subject?: string | undefined
  /** attaches the complete message as message/rfc822 instead of quoting it */
  as_attachment?: boolean | undefined
  /** an address of the identity: its own, an alias, or any of a domain whose catch-all it is. Default: the address that received the e-mail replied to, else its own */
  from?: string | undefined
  body_text?: string | undefined
  /** the same as body_text */
  body?: string | undefined
  body_html?: string | undefined
  reply_to?: Recipients | undefined
  headers?: HeaderFields | undefined
  attachments?: NewAttachment[] | undefined
  labels?: string[] | undefined
  /** not before this time, at most a year ahead */
  send_at?: string | undefined
  auto_submitted?: AutoSubmitted | undefined
  /** sends only over verified TLS at every hop (REQUIRETLS, RFC 8689); otherwise it bounces */
  require_tls?: boolean | undefined
}

export interface NewIdentity {
  /** unique in the account, case-insensitive; generated if omitted */
  name?: string | undefined
  /** the same as name */
  display_name?: string | undefined
  provision_phone?: boolean | undefined
  phone_country?: string | undefined
  /** free-form, at most 16 KiB */
  metadata?: Record<string, Json> | undefined
  date_of_birth?: string | undefined
  email_username?: string | undefined
  email_domain?: string | undefined
  expires_at?: string | null | undefined
}

export interface NewReply {
  reply_all?: boolean | undefined
  /** also sends to addresses that the verified sender did not sign: a Reply-To whose reply_to_verified is false and, with reply_all, those of an unsigned To or Cc */
  allow_unsigned?: boolean | undefined
  cc?: Recipients | undefined
  bcc?: Recipients | undefined
  subject?: string | undefined
  /** quotes the message replied to below the text; default true */
  quote?: boolean | undefined
  /** an address of the identity: its own, an alias, or any of a domain whose catch-all it is. Default: the address that received the e-mail replied to, else its own */
  from?: string | undefined
  body_text?: string | undefined
  /** the same as body_text */
  body?: string | undefined
  body_html?: string | undefined
  reply_to?: Recipients | undefined
  headers?: HeaderFields | undefined
  attachments?: NewAttachment[] | undefined
  labels?: string[] | undefined
  /** not before this time, at most a year ahead */
  send_at?: string | undefined
  auto_submitted?: AutoSubmitted | undefined
  /** sends only over verified TLS at every hop (REQUIRETLS, RFC 8689); otherwise it bounces */
  require_tls?: boolean | undefined
}

export interface NewReport {
  type: string
  /** the id, handle, DID or address of an agent, or the id of an identity; default: the reporter */
  about?: string | undefined
  weight?: number | undefined
  /** private: not shown to the subject */
  note?: string | undefined
  /** private */
  data?: Record<string, Json> | undefined
}

export interface NewSms {
  to: string
  body: string
}

export interface NewSuppression {
  email: string
  reason?: string | undefined
}

export interface NewTotpEntry {
  /** base32, case-insensitive; spaces, dashes and padding are ignored. This or uri is required */
  secret?: string | undefined
  /** otpauth://totp/…, the content of the QR code; provides the fields omitted below */
  uri?: string | undefined
  /** required unless the uri names one */
  service_name?: string | undefined
  account_name?: string | undefined
  /** default: the value in the uri, else SHA1 */
  algorithm?: 'SHA1' | 'SHA256' | 'SHA512' | undefined
  /** default: the value in the uri, else 6 */
  digits?: number | undefined
  /** seconds; default: the value in the uri, else 30 */
  period?: number | undefined
}

export interface NewTransaction {
  type: 'report' | 'refund'
  amount_cents: number
  /** the reveal it belongs to; the first report for a reveal replaces the amount it reserved */
  reveal_id?: string | undefined
  description?: string | undefined
}

export interface NewWebhook {
  /** https, without credentials, at a public address; the operator may allow more */
  url: string
  /** names of events, such as email.received; * for all events that the creating key may read */
  events: string[]
  /** generated if omitted */
  secret?: string | undefined
  active?: boolean | undefined
  /** only events of this identity */
  identity_id?: string | null | undefined
  description?: string | null | undefined
  /** sent with every delivery */
  headers?: Record<string, string> | undefined
}

export type Period = 'one_time' | 'daily' | 'weekly' | 'monthly' | 'yearly'

export interface PhoneNumber {
  id: string
  identity_id: string | null
  phone_number: string
  country: string
  provider: string
}

export interface PhoneWish {
  country?: string | undefined
}

/** null means no limit */
export interface PlanLimits {
  identities: number | null
  domains: number | null
  aliases: number | null
  webhooks: number | null
  api_keys: number | null
  phone_numbers: number | null
  cards: number | null
  totp_entries: number | null
  agents: number | null
  storage_bytes: number | null
  emails_sent: number | null
  sms_sent: number | null
}

export interface PlanUsage {
  identities: number
  domains: number
  aliases: number
  webhooks: number
  api_keys: number
  phone_numbers: number
  cards: number
  totp_entries: number
  agents: number
  storage_bytes: number
  emails_sent: number
  sms_sent: number
}

export interface QueueEntry {
  id: string
  /** email, email-release (waits for its time), webhook, sms, sms-media, … */
  kind: string
  /** the destination that shares a concurrency limit: a domain, a webhook’s id, … */
  destination: string
  /** ids and addresses, without content */
  about: Record<string, string>
  state: 'waiting' | 'running' | 'done' | 'failed'
  attempts: number
  /** the response to the last finished attempt */
  last_answer: string | null
  /** of the reply of the mail server (RFC 5321 4.2) */
  smtp_code: number | null
  /** RFC 3463 */
  enhanced_code: string | null
  /** the text of the reply, or the reason why there was none */
  response: string | null
  /** the host name of the server */
  mx: string | null
  /** the address of the server */
  ip: string | null
  /** version, cipher, and whether the certificate was verified */
  tls: string | null
  /** why it ended early, if it did */
  reason: string | null
  /** time of the next attempt */
  due_at: string | null
  created_at: string
  ended_at: string | null
  /** seconds from its creation to its end, or until now */
  age: number
}

export interface QueueEntryWithHistory {
  id: string
  /** email, email-release (waits for its time), webhook, sms, sms-media, … */
  kind: string
  /** the destination that shares a concurrency limit: a domain, a webhook’s id, … */
  destination: string
  /** ids and addresses, without content */
  about: Record<string, string>
  state: 'waiting' | 'running' | 'done' | 'failed'
  attempts: number
  /** the response to the last finished attempt */
  last_answer: string | null
  /** of the reply of the mail server (RFC 5321 4.2) */
  smtp_code: number | null
  /** RFC 3463 */
  enhanced_code: string | null
  /** the text of the reply, or the reason why there was none */
  response: string | null
  /** the host name of the server */
  mx: string | null
  /** the address of the server */
  ip: string | null
  /** version, cipher, and whether the certificate was verified */
  tls: string | null
  /** why it ended early, if it did */
  reason: string | null
  /** time of the next attempt */
  due_at: string | null
  created_at: string
  ended_at: string | null
  /** seconds from its creation to its end, or until now */
  age: number
  history: {
    number: number
    started_at: string
    ended_at: string | null
    outcome: 'done' | 'failed' | 'deferred' | 'interrupted' | 'pending'
    answer: string | null
    /** of the reply of the mail server (RFC 5321 4.2) */
    smtp_code: number | null
    /** RFC 3463 */
    enhanced_code: string | null
    /** the text of the reply, or the reason why there was none */
    response: string | null
    /** the host name of the server */
    mx: string | null
    /** the address of the server */
    ip: string | null
    /** version, cipher, and whether the certificate was verified */
    tls: string | null
  }[]
}

export interface QueueSummary {
  kinds: {
    kind: string
    waiting: number
    running: number
    /** age of the oldest, in seconds */
    age: number
    /** time of the next attempt */
    due_at: string | null
  }[]
  /** the hundred destinations with the most waiting deliveries */
  destinations: {
    kind: string
    destination: string
    waiting: number
    running: number
    /** age of the oldest, in seconds */
    age: number
    /** time of the next attempt */
    due_at: string | null
  }[]
}

export interface RealtimeToken {
  token: string
  expires_at: string
  /** URL of the WebSocket */
  url: string
  /** examples of what to send to url, for this token, as JSON texts: subscribe is answered by {"type":"subscribed",…} and then {"type":"event","channel":…,"event":{…}} for each event; resume, after a reconnect, names the id of the last event that was handled; a wrong frame is answered by {"type":"error","code":…,"message":…} */
  frames: {
    subscribe: {
      type: 'subscribe'
      channel: 'agent_events' | 'email_messages' | 'sms_messages'
      identity_id?: string | undefined
    }
    resume: {
      type: 'subscribe'
      channel: 'agent_events' | 'email_messages' | 'sms_messages'
      identity_id?: string | undefined
      since: string
    }
    unsubscribe: {
      type: 'unsubscribe'
      channel: 'agent_events' | 'email_messages' | 'sms_messages'
      identity_id?: string | undefined
    }
    refresh: {
      type: 'refresh'
      token: string
    }
    ping: {
      type: 'ping'
    }
  }
  /** the first argument of createClient */
  supabase_url: string
}

export interface RealtimeTokenWish {
  /** grants access only to this identity; default: the whole account */
  identity_id?: string | undefined
  /** grants access only to these; default: every channel the key may read */
  channels?: ('agent_events' | 'email_messages' | 'sms_messages')[] | undefined
  /** seconds for which it can connect and join */
  expires_in?: number | undefined
}

/** an address, also as Name <address>, or a list of them */
export type Recipients = string | string[]

export interface ReducedIdentity {
  id: string
  name: string
  email: string
  phone_number: string | null
  status: 'active' | 'suspended'
  created_at: string
}

export interface Reloaded {
  /** changed settings that are in effect */
  reloaded: string[]
  /** settings that differ from those at the start and require a restart */
  restart: string[]
}

export interface Report {
  id: string
  /** whether this identity made the report or is its subject */
  direction: 'given' | 'received'
  type: string
  /** as sent; null for the subject */
  about: string | null
  /** a DID, the id of an identity of the account, or an address */
  subject: string
  /** as sent; 0 for reports within an account */
  weight: number
  /** the effective weight */
  counted_weight: number
  /** null for the subject */
  note: string | null
  data: Record<string, Json>
  created_at: string
}

export interface Reputation {
  /** the DID of the agent, else the id of the identity */
  subject: string
  /** from 0 to 1; a new identity has 0.5 */
  score: number
  tier: 'bronze' | 'silver' | 'gold' | 'platinum'
  components: {
    name: string
    /** the number counted */
    value: number
    /** its effect on the score, positive or negative */
    effect: number
    explanation: string
  }[]
  counters: Record<string, number>
  updated_at: string
}

export interface Revealed {
  /** base64, exactly as it was given */
  encrypted_data: string
  card: Card
  transaction: CardTransaction
}

export interface RevealWish {
  /** the amount to reserve of the budget; rejected if too little is left */
  amount_cents?: number | undefined
  /** the purpose; stored with the transaction */
  purpose?: string | undefined
}

export interface RevokedApiKey {
  id: string
  label: string
  scopes: Scope[]
  /** the first characters, to tell keys apart */
  key_prefix: string
  /** the one identity the key is bound to */
  identity_id: string | null
  /** calls a minute, of this key and the keys it created together; 0 is no limit */
  rate_limit: number
  created_at: string
  /** the key or session that created it; null if it was created on the machine of the box, or before this was recorded */
  created_by: string | null
  /** the key or session that last gave it a new secret, if not the key itself */
  rotated_by: string | null
  last_used_at: string | null
  expires_at: string | null
  revoked_at: string | null
  ended: EndedWithKey
}

export interface Rotation {
  /** time for which the old secret still works */
  grace_seconds?: number | undefined
}

/** What a key may do. identities: read identities, one-time passwords and their codes, logins with their passwords, agents; write: also create, change and delete them. messages: read e-mail and SMS; write: send, mark and delete them. emails, sms: the same for one of the two. cards: read and reveal cards; write: store, freeze and cancel them. account: read keys, webhooks, domains and limits; write: change them, which includes making keys. holds:decide: change what may leave and who may write, add accounts, release what was set aside, and decide what is held, but for what the key sent itself. audit: read who did what in the account; not for bound keys. */
export type Scope = 'identities:read' | 'identities:write' | 'messages:read' | 'messages:write' | 'emails:read' | 'emails:write' | 'sms:read' | 'sms:write' | 'cards:read' | 'cards:write' | 'account:read' | 'account:write' | 'holds:decide' | 'audit:read'

export interface Screening {
  /** 0 to 100; from 50 a message is suspicious */
  score: number
  reasons: {
    kind: 'hidden_text' | 'instruction' | 'invisible_characters' | 'bidi' | 'alternative_differs'
    /** subject, sender and text are seen; text_part is a text that the HTML does not show; others say what hides it */
    where: 'subject' | 'sender' | 'text' | 'text_part' | 'comment' | 'attribute' | 'element' | 'hidden_attribute' | 'display' | 'visibility' | 'opacity' | 'size' | 'color' | 'position' | 'clip' | 'zero_box'
    /** at most 80 characters, by a stranger: not to be followed */
    excerpt: string
  }[]
  /** letters of hidden text that text leaves out */
  hidden_text_omitted: number
}

export interface SecretRotation {
  /** generated if omitted */
  secret?: string | undefined
}

/** updated_at is null where none were set: everyone may write */
export interface SenderRules {
  /** addresses (ada@example.net) and domains (@example.net) that may write; empty: everyone */
  allow: string[]
  /** those that may not */
  block: string[]
  /** only senders whose domain is verified (DMARC pass) */
  require_dmarc: boolean
  /** accept a verified answer to a sent message from one who was written to, whatever allow says */
  replies: boolean
  /** sets messages with a higher score of screening aside; null: none */
  max_score: number | null
  updated_at: string | null
}

export interface SenderRulesInput {
  /** addresses (ada@example.net) and domains (@example.net) that may write; empty: everyone */
  allow?: string[] | undefined
  /** those that may not */
  block?: string[] | undefined
  /** only senders whose domain is verified (DMARC pass) */
  require_dmarc?: boolean | undefined
  /** accept a verified answer to a sent message from one who was written to, whatever allow says */
  replies?: boolean | undefined
  /** sets messages with a higher score of screening aside; null: none */
  max_score?: number | null | undefined
}

export interface SessionEntry {
  id: string
  /** whether it is the session of this call */
  current: boolean
  ip: string
  user_agent: string
  created_at: string
  last_used_at: string
  expires_at: string
}

export interface SessionsEnded {
  id: string
  deleted: true
  count: number
}

export interface Sms {
  id: string
  identity_id: string
  direction: 'inbound' | 'outbound'
  /** held: a person is to approve it first; sent: accepted by the provider; unknown: its response was lost, and the message is not resent automatically */
  status: 'received' | 'held' | 'queued' | 'sent' | 'delivered' | 'failed' | 'unknown'
  from: string
  to: string
  body: string
  read: boolean
  provider: string
  provider_id: string | null
  /** number of segments: each 160 or 153 characters of GSM-7, 70 or 67 of UCS-2 */
  segments: number
  error: SmsError | null
  media: SmsMedia[]
  /** one-time codes, best first */
  codes: string[]
  /** of a message that a policy held for a person, and what became of that; null of others */
  hold: HoldState | null
  received_at: string
  sent_at: string | null
  delivered_at: string | null
  created_at: string
  /** time of deletion; only in the trash */
  deleted_at?: string | undefined
}

export interface SmsChange {
  read?: boolean | undefined
  unread?: boolean | undefined
}

export interface SmsError {
  code: string
  message: string
}

export interface SmsMedia {
  index: number
  content_type: string
  /** pending while it is fetched from the provider */
  status: 'pending' | 'kept' | 'failed'
  size: number | null
  sha256: string | null
}

export interface SmsMediaWithUrl {
  index: number
  content_type: string
  /** pending while it is fetched from the provider */
  status: 'pending' | 'kept' | 'failed'
  size: number | null
  sha256: string | null
  url: string
  expires_at: string
}

export interface SmsMessage {
  id: string
  identity_id: string
  direction: 'inbound' | 'outbound'
  /** held: a person is to approve it first; sent: accepted by the provider; unknown: its response was lost, and the message is not resent automatically */
  status: 'received' | 'held' | 'queued' | 'sent' | 'delivered' | 'failed' | 'unknown'
  from: string
  to: string
  body: string
  read: boolean
  provider: string
  provider_id: string | null
  /** number of segments: each 160 or 153 characters of GSM-7, 70 or 67 of UCS-2 */
  segments: number
  error: SmsError | null
  media: SmsMedia[]
  /** one-time codes, best first */
  codes: string[]
  /** of a message that a policy held for a person, and what became of that; null of others */
  hold: HoldState | null
  received_at: string
  sent_at: string | null
  delivered_at: string | null
  created_at: string
  /** time of deletion; only in the trash */
  deleted_at?: string | undefined
  type: 'sms'
}

export interface Stats {
  /** start of the first step */
  from: string
  /** end of the last step */
  to: string
  step: 'minute' | 'hour'
  /** every step, oldest first; null if the box was not running, or the step has not ended */
  series: {
    /** start of the step */
    at: string
    /** messages accepted by SMTP */
    mail_in: number | null
    /** messages and recipients rejected by SMTP */
    mail_refused: number | null
    /** copies of messages accepted by a server, a relay or this box */
    mail_delivered: number | null
    /** copies of messages that failed permanently */
    mail_failed: number | null
    /** events in the log */
    events: number | null
    /** successful webhook deliveries */
    webhooks_done: number | null
    /** webhook deliveries that failed permanently */
    webhooks_failed: number | null
    /** answered API calls, with any status */
    api_calls: number | null
    /** waiting and running deliveries of all kinds; the maximum of an hour */
    queue_depth: number | null
    /** delay of the oldest due delivery in seconds; the maximum of an hour */
    oldest_due: number | null
    /** free bytes on the disk; the minimum of an hour */
    disk_free: number | null
    /** bytes of the database and its log; the maximum of an hour */
    database: number | null
  }[]
}

export interface Status {
  version: string
  started_at: string
  /** seconds */
  uptime: number
  /** failing modules: http, smtp, space, store */
  failing: string[]
  /** where mail from the domain of the box can be sent */
  sending: {
    /** mail.domain, the domain of new addresses */
    domain: string
    /** whether mail from it can be sent to any address */
    can_send_outside: boolean
    /** where it can be sent, and why */
    explanation: string
    /** what the operator can do; null if it can be sent anywhere */
    fix: string | null
  }
  identities: number
  queue: {
    kind: string
    waiting: number
    running: number
    /** age of the oldest, in seconds */
    age: number
    /** time of the next attempt */
    due_at: string | null
  }[]
  /** as far back as the event log goes */
  last_24_hours: {
    emails_received: number
    /** copies accepted by a server or a relay */
    emails_delivered: number
    emails_bounced: number
    emails_failed: number
    sms_received: number
    sms_sent: number
    sms_failed: number
  }
  disk: {
    /** bytes; null if it cannot be read */
    free: number | null
    /** bytes of the database and its log */
    database: number
    /** whether new data is rejected */
    low: boolean
    /** free bytes below which new data is rejected */
    min_free: number
  }
}

export interface Storage {
  /** bytes of e-mail, including the trash and the metadata of imported e-mail */
  used: number
  /** the mail quota in bytes (mail.quota); null means no limit */
  limit: number | null
  /** bytes of text messages and their media */
  media: number
  /** bytes of the above that are in the trash, purged early when space is short */
  trash: number
}

export interface Subscription {
  plan: 'self_hosted'
  status: 'active'
  limits: PlanLimits
  usage: PlanUsage
  /** the start of the month in UTC */
  current_period_start: string
  /** time at which emails_sent and sms_sent are reset to 0 */
  current_period_end: string
}

export interface Suppression {
  id: string
  email: string
  reason: string
  source: 'manual' | 'bounce' | 'complaint'
  /** the message that bounced or got a complaint */
  email_id: string | null
  created_at: string
}

export interface Thread {
  id: string
  identity_id: string
  subject: string
  participants: string[]
  message_count: number
  unread_count: number
  last_message_at: string
  snippet: string
}

export interface ThreadWithMessages {
  id: string
  identity_id: string
  subject: string
  participants: string[]
  message_count: number
  unread_count: number
  last_message_at: string
  snippet: string
  /** oldest first, as many as fit into one response (about 1 MiB) */
  messages: Email[]
  /** whether there are more messages */
  has_more: boolean
  next_cursor: string | null
}

export interface TokenQuestion {
  token: string
  /** the expected audience; default: the public URL of this box */
  audience?: string | undefined
  /** the same as audience */
  aud?: string | undefined
}

export interface TokensRevoked {
  identity_id: string
  revoked_at: string
}

export interface TokenWish {
  /** the recipient of the token, such as its origin; default: the public URL of this box */
  audience?: string | undefined
  /** the same as audience */
  aud?: string | undefined
  /** seconds */
  expires_in?: number | undefined
}

export interface TotpCode {
  /** digits; a string, because it may start with 0 */
  code: string
  /** seconds until the next code, rounded up */
  remaining_seconds: number
  period: number
  expires_at: string
}

export interface TotpEntry {
  id: string
  identity_id: string
  service_name: string
  /** the account at the service, as named by the uri or the caller */
  account_name: string | null
  algorithm: 'SHA1' | 'SHA256' | 'SHA512'
  digits: number
  /** seconds for which a code is valid */
  period: number
  created_at: string
}

export interface TrustEvaluation {
  decision: 'allow' | 'review' | 'deny'
  score: number
  tier: 'bronze' | 'silver' | 'gold' | 'platinum'
  min_score: number
  subject: {
    did: string | null
    handle: string | null
    /** only of the caller's account */
    identity_id: string | null
    email: string | null
    /** whether a token authenticates the subject */
    proven: boolean
  }
  reasons: string[]
}

export interface TrustQuestion {
  /** an identity token; exactly one of these five is required */
  token?: string | undefined
  did?: string | undefined
  /** the handle of an agent of this box */
  handle?: string | undefined
  /** an identity of the caller's account */
  identity_id?: string | undefined
  email?: string | undefined
  /** the expected audience of the token; default: this box; only with token */
  audience?: string | undefined
  /** the same as audience */
  aud?: string | undefined
  /** the action to allow; each has its own min_score */
  action?: 'read' | 'message' | 'delegate' | 'payment' | undefined
  /** overrides the min_score of the action */
  min_score?: number | undefined
}

export interface VerifiedToken {
  valid: boolean
  /** why it is not valid */
  reason: 'malformed' | 'unsupported_algorithm' | 'unsupported_header' | 'wrong_type' | 'expired' | 'not_yet_valid' | 'issued_in_the_future' | 'lifetime_too_long' | 'wrong_issuer' | 'wrong_subject' | 'wrong_audience' | 'unknown_key' | 'bad_signature' | 'revoked' | 'unknown_subject' | 'suspended' | 'issuer_unreachable' | 'issuer_invalid' | null
  /** the reason as a sentence */
  message: string | null
  /** whether a retry may help: another box did not respond */
  temporary: boolean
  /** its claims; null unless its signature is valid */
  claims: Record<string, Json> | null
  /** null unless it belongs to this box */
  identity: {
    /** only of the caller's account */
    id: string | null
    email: string
  } | null
  agent: {
    did: string
    /** only of this box */
    id: string | null
    handle: string | null
    display_name: string | null
  } | null
  /** the present value; null unless it belongs to this box: the value given by another box is in the claims */
  reputation: {
    score: number
    tier: string
  } | null
}

export interface WaitAnswer {
  timed_out: boolean
  /** pass it as since in the next call to get every message exactly once */
  since: string | null
  item: Message | null
  codes: string[]
  links: Link[]
}

export interface Webhook {
  id: string
  url: string
  events: string[]
  active: boolean
  /** only events of this identity */
  identity_id: string | null
  description: string | null
  headers: Record<string, string>
  /** time of the first failed attempt since the last success */
  failing_since: string | null
  disabled_at: string | null
  /** why the box disabled it: it answered 410, failed for 5 days, its identity was deleted, or the key that created it ended */
  disabled_reason: 'gone' | 'failing' | 'identity_deleted' | 'key_ended' | null
  created_at: string
  /** the key or session that created it; null if it was created on the machine of the box, or before this was recorded */
  created_by: string | null
  updated_at: string
  /** the key or session that last changed its url, events or secret; null if unchanged since its creation */
  updated_by: string | null
  /** time at which it ends with the key that created it; null if it does not expire */
  expires_at: string | null
}

export interface WebhookChange {
  /** https, without credentials, at a public address; the operator may allow more */
  url?: string | undefined
  /** names of events, such as email.received; * for all events that the creating key may read */
  events?: string[] | undefined
  active?: boolean | undefined
  identity_id?: string | null | undefined
  description?: string | null | undefined
  /** replaces all of them */
  headers?: Record<string, string> | undefined
}

export interface WebhookDelivery {
  id: string
  webhook_id: string
  event_id: string
  event: string
  status: 'pending' | 'delivered' | 'failed'
  /** oldest first; a redelivery keeps the last 50 */
  attempts: {
    number: number
    status: 'pending' | 'delivered' | 'failed' | 'interrupted'
    started_at: string
    ended_at: string | null
    response_status: number | null
    response_body: string | null
    error: string | null
  }[]
  /** of the last finished attempt */
  response_status: number | null
  /** the first KiB of the response; less if it has many control characters; null if the type of the event requires a scope that the caller lacks */
  response_body: string | null
  next_attempt_at: string | null
  created_at: string
}

export interface WebhookDeliveryWithRequest {
  id: string
  webhook_id: string
  event_id: string
  event: string
  status: 'pending' | 'delivered' | 'failed'
  /** oldest first; a redelivery keeps the last 50 */
  attempts: {
    number: number
    status: 'pending' | 'delivered' | 'failed' | 'interrupted'
    started_at: string
    ended_at: string | null
    response_status: number | null
    response_body: string | null
    error: string | null
  }[]
  /** of the last finished attempt */
  response_status: number | null
  /** the first KiB of the response; less if it has many control characters; null if the type of the event requires a scope that the caller lacks */
  response_body: string | null
  next_attempt_at: string | null
  created_at: string
  /** the request of the next attempt; its headers and signature are created then */
  request: {
    /** the present url of the webhook */
    url: string
    /** the body of the request; null if the event is no longer in the log, or its type requires a scope that the caller lacks */
    body: string | null
  }
}

/** a webhook without its headers */
export interface WebhookNoted {
  id: string
  url: string
  events: string[]
  active: boolean
  /** only events of this identity */
  identity_id: string | null
  description: string | null
  /** time of the first failed attempt since the last success */
  failing_since: string | null
  disabled_at: string | null
  /** why the box disabled it: it answered 410, failed for 5 days, its identity was deleted, or the key that created it ended */
  disabled_reason: 'gone' | 'failing' | 'identity_deleted' | 'key_ended' | null
  created_at: string
  /** the key or session that created it; null if it was created on the machine of the box, or before this was recorded */
  created_by: string | null
  updated_at: string
  /** the key or session that last changed its url, events or secret; null if unchanged since its creation */
  updated_by: string | null
  /** time at which it ends with the key that created it; null if it does not expire */
  expires_at: string | null
}

export interface WebhookWithSecret {
  id: string
  url: string
  events: string[]
  active: boolean
  /** only events of this identity */
  identity_id: string | null
  description: string | null
  headers: Record<string, string>
  /** time of the first failed attempt since the last success */
  failing_since: string | null
  disabled_at: string | null
  /** why the box disabled it: it answered 410, failed for 5 days, its identity was deleted, or the key that created it ended */
  disabled_reason: 'gone' | 'failing' | 'identity_deleted' | 'key_ended' | null
  created_at: string
  /** the key or session that created it; null if it was created on the machine of the box, or before this was recorded */
  created_by: string | null
  updated_at: string
  /** the key or session that last changed its url, events or secret; null if unchanged since its creation */
  updated_by: string | null
  /** time at which it ends with the key that created it; null if it does not expire */
  expires_at: string | null
  /** returned only once */
  secret: string
}

export interface WhoAmI {
  account_id: string
  /** the API key; null for a session */
  key_id: string | null
  /** the session of a signed-in person; null for a key */
  session_id: string | null
  scopes: ('identities:read' | 'identities:write' | 'messages:read' | 'messages:write' | 'emails:read' | 'emails:write' | 'sms:read' | 'sms:write' | 'cards:read' | 'cards:write' | 'account:read' | 'account:write' | 'holds:decide' | 'audit:read')[]
  /** calls a minute; 0 means no limit */
  rate_limit: number
  /** time at which the key, or the secret that was used, ends, also by the end of its identity */
  expires_at: string | null
  /** whether mail can be sent to addresses that are not on this box: by the identity, else by a new one at the domain of the box */
  can_send_outside: boolean
  /** why not, and who can change that; null if it can */
  cannot_send_outside_reason: string | null
  /** the one identity that the key is bound to; null if it reaches every identity of its account */
  identity: Identity | null
}

export interface AccountSessionsQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface AccountEventsQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** an evt_ id or a time; from there, oldest first */
  since?: string | undefined
  /** event names, separated by commas; default: all that the key may read */
  types?: string | undefined
  /** only events of this identity */
  identity_id?: string | undefined
  /** seconds to wait for an event where there is none yet; without since only what happens from now on */
  wait?: number | undefined
}

export interface AccountsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface AgentsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  /** the agent with this handle, present or former */
  handle?: string | undefined
  identity_id?: string | undefined
}

export interface AgentsErc8004Query {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface AliasesListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface ApiKeysListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  /** only objects created by this key or session, which may have ended */
  created_by?: string | undefined
}

export interface ApiKeysRevokeQuery {
  /** keeps what the key created; otherwise that ends with the key */
  keep?: boolean | undefined
}

export interface AuditListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  /** the id of a key or person, operator or anonymous */
  actor?: string | undefined
  /** an action, or all of one subject: key.* */
  action?: string | undefined
  identity_id?: string | undefined
  /** from this time on */
  after?: string | undefined
  /** before this time */
  before?: string | undefined
}

export interface BackupsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface BoxStatsQuery {
  /** default: an hour before `to`, or a day if the step is an hour */
  from?: string | undefined
  /** exclusive; default: now */
  to?: string | undefined
  step?: 'minute' | 'hour' | undefined
}

export interface CardsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface CardsTransactionsQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  type?: 'reveal' | 'report' | 'refund' | 'reset' | undefined
}

export interface DomainsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface DomainsReportsQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  kind?: 'dmarc' | 'tls' | undefined
}

export interface EmailsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  unread?: boolean | undefined
  /** part of the sender’s address or name */
  from?: string | undefined
  /** part of a recipient address */
  to?: string | undefined
  /** received after this time */
  after?: string | undefined
  /** received before this time */
  before?: string | undefined
  /** body: rows with body_text, body_html and text; a page then has as many as fit into about 1 MiB */
  include?: 'body' | undefined
  /** default inbound; in the trash both */
  direction?: 'inbound' | 'outbound' | 'all' | undefined
  thread_id?: string | undefined
  label?: string | undefined
  /** part of the subject */
  subject?: string | undefined
  has_attachments?: boolean | undefined
  /** default false; in the trash both */
  spam?: boolean | undefined
  /** also list duplicates of earlier messages: false by default, in the trash true */
  duplicates?: boolean | undefined
  /** list deleted messages that can be restored, instead of the others */
  trash?: boolean | undefined
}

export interface EmailsSearchQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  unread?: boolean | undefined
  /** part of the sender’s address or name */
  from?: string | undefined
  /** part of a recipient address */
  to?: string | undefined
  /** received after this time */
  after?: string | undefined
  /** received before this time */
  before?: string | undefined
  /** default inbound, as in the list */
  direction?: 'inbound' | 'outbound' | 'all' | undefined
  /** words, "phrases", prefix*, -not, from:, subject:, has:attachment */
  query?: string | undefined
  /** the same as query */
  q?: string | undefined
  /** body: rows with body_text, body_html and text; a page then has as many as fit into about 1 MiB */
  include?: 'body' | undefined
}

export interface EmailsDeleteQuery {
  /** deletes permanently and immediately, also from the trash */
  purge?: boolean | undefined
}

export interface EmailsHtmlQuery {
  /** load external images, which tells their servers that it was viewed */
  remote?: boolean | undefined
  /** a copy whose size the page of the box can read: it has the origin of the box; it loads no external images, and its links open no window */
  measure?: boolean | undefined
}

export interface EmailsAttachmentsQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface EmailsAttachmentTextQuery {
  /** the next_offset of the piece before */
  offset?: number | undefined
  /** characters */
  limit?: number | undefined
}

export interface HoldsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  status?: 'open' | 'approved' | 'rejected' | 'expired' | 'cancelled' | 'all' | undefined
  identity_id?: string | undefined
}

export interface HoldsApproveBody {
  /** of what was looked at; another one is a conflict, code hold_changed */
  sha256?: string | undefined
  /** for the sender */
  reason?: string | undefined
}

export interface HoldsRejectBody {
  /** for the sender, who may write anew */
  reason?: string | undefined
}

export interface IdentitiesListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  /** the identity with this name, case-insensitive */
  name?: string | undefined
  /** the identity with this address or alias */
  email?: string | undefined
  /** a part of the name, address or number, case-insensitive */
  query?: string | undefined
  /** the same as query */
  q?: string | undefined
}

export interface IdentitiesEventsQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  /** an event name, such as email.received, or the type of a report, such as positive; an unknown name is rejected */
  type?: string | undefined
  /** an evt_ id or a time; from there, oldest first */
  since?: string | undefined
}

export interface IdentitiesMessagesQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface IdentitiesWaitQuery {
  channel?: 'email' | 'sms' | 'any' | undefined
  /** an evt_ id or a time; from there, oldest first */
  since?: string | undefined
  /** part of the sender’s address, name (its first 1,000 characters) or number */
  from?: string | undefined
  /** part of the first 1,000 characters of the subject */
  subject_contains?: string | undefined
  /** seconds to wait */
  timeout?: number | undefined
  /** also returns spam */
  spam?: boolean | undefined
}

export interface JobsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  kind?: string | undefined
}

export interface QueueListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  /** open are those that are waiting or running */
  state?: 'open' | 'waiting' | 'running' | 'done' | 'failed' | 'all' | undefined
  /** email, webhook, sms, … */
  kind?: string | undefined
  /** a domain, a webhook’s id, … */
  destination?: string | undefined
}

export interface SmsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  unread?: boolean | undefined
  direction?: 'inbound' | 'outbound' | 'all' | undefined
  /** part of the sender’s number */
  from?: string | undefined
  /** part of the recipient’s number */
  to?: string | undefined
  /** received after this time */
  after?: string | undefined
  /** received before this time */
  before?: string | undefined
  /** list deleted messages that can be restored, instead of the others */
  trash?: boolean | undefined
}

export interface SmsDeleteQuery {
  /** deletes permanently and immediately, also from the trash */
  purge?: boolean | undefined
}

export interface SuppressionsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface ThreadsListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface ThreadsGetQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
}

export interface TotpListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

export interface TotpCodeQuery {
  /** seconds for which the code must still be valid, below the period; with fewer left the response waits for the next code */
  min_remaining?: number | undefined
}

export interface WebhooksListQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
  /** only objects created by this key or session, which may have ended */
  created_by?: string | undefined
}

export interface WebhooksDeliveriesQuery {
  limit?: number | undefined
  /** the next_cursor of the page before */
  cursor?: string | undefined
  /** number of rows to skip; not together with cursor */
  offset?: number | undefined
}

/** The data of each event. */
export interface EventData {
  'identity.created': Identity
  'identity.updated': Identity
  'identity.deleted': {
    id: string
    name: string
    email: string
    status: 'deleted'
  }
  'domain.verified': Domain
  'domain.failed': Domain
  'certificate.renewed': Certificate
  'certificate.failed': Certificate
  'email.received': Email
  'email.released': Email
  'email.queued': Email
  'email.sent': {
    id: string
    identity_id: string
    thread_id: string
    direction: 'inbound' | 'outbound'
    status: EmailStatus
    from: string
    from_name: string
    to: string
    subject: string
    snippet: string
    read: boolean
    spam: boolean
    /** whether the message claims to be generated by a program; not authenticated */
    automated: boolean
    /** the part after + in the recipient address */
    tag: string | null
    labels: string[]
    size: number
    has_attachments: boolean
    verified_domain: string | null
    message_id: string | null
    in_reply_to: string | null
    codes: string[]
    received_at: string
    /** when the first server of a recipient, or a relay, accepted it */
    sent_at: string | null
    created_at: string
    /** time of deletion; only in the trash */
    deleted_at?: string | undefined
    body_text: string | null
    body_html: string | null
    text: string
    references: string[]
    reply_to: string | null
    /** whether verified_domain also covers reply_to; false: a forwarder may have added it, and reply goes to from unless specified; null when there is no reply_to, or from is not verified */
    reply_to_verified: boolean | null
    cc: Address[]
    bcc: Address[]
    recipients: {
      to: Address[]
      cc: Address[]
      bcc: Address[]
    }
    body_truncated?: boolean | undefined
    links: Link[]
    attachments: Attachment[]
    authentication: Authentication | null
    /** what is hidden in a received message or instructs its reader; null for others, and for messages of older versions */
    screening: Screening | null
    /** why a received message was set aside, until it is released */
    set_aside: 'blocked_sender' | 'unlisted_sender' | 'unverified_sender' | 'suspicious' | null
    /** of an outbound message held for a person; null for others */
    hold: HoldState | null
    parse_error: string | null
    /** time at which a scheduled message is sent */
    send_at: string | null
    /** the key or session that sent or scheduled an outbound message; null for others, and for messages of older versions */
    created_by: string | null
    /** one for each recipient of an outbound message; history is included when the e-mail is read alone, for 30 days */
    deliveries: EmailDelivery[]
    /** the earlier e-mail with the same envelope and content, within 24 h (RFC 1047) */
    duplicate_of: string | null
    delivery: Delivery
  }
  'email.delivered': {
    id: string
    identity_id: string
    thread_id: string
    direction: 'inbound' | 'outbound'
    status: EmailStatus
    from: string
    from_name: string
    to: string
    subject: string
    snippet: string
    read: boolean
    spam: boolean
    /** whether the message claims to be generated by a program; not authenticated */
    automated: boolean
    /** the part after + in the recipient address */
    tag: string | null
    labels: string[]
    size: number
    has_attachments: boolean
    verified_domain: string | null
    message_id: string | null
    in_reply_to: string | null
    codes: string[]
    received_at: string
    /** when the first server of a recipient, or a relay, accepted it */
    sent_at: string | null
    created_at: string
    /** time of deletion; only in the trash */
    deleted_at?: string | undefined
    body_text: string | null
    body_html: string | null
    text: string
    references: string[]
    reply_to: string | null
    /** whether verified_domain also covers reply_to; false: a forwarder may have added it, and reply goes to from unless specified; null when there is no reply_to, or from is not verified */
    reply_to_verified: boolean | null
    cc: Address[]
    bcc: Address[]
    recipients: {
      to: Address[]
      cc: Address[]
      bcc: Address[]
    }
    body_truncated?: boolean | undefined
    links: Link[]
    attachments: Attachment[]
    authentication: Authentication | null
    /** what is hidden in a received message or instructs its reader; null for others, and for messages of older versions */
    screening: Screening | null
    /** why a received message was set aside, until it is released */
    set_aside: 'blocked_sender' | 'unlisted_sender' | 'unverified_sender' | 'suspicious' | null
    /** of an outbound message held for a person; null for others */
    hold: HoldState | null
    parse_error: string | null
    /** time at which a scheduled message is sent */
    send_at: string | null
    /** the key or session that sent or scheduled an outbound message; null for others, and for messages of older versions */
    created_by: string | null
    /** one for each recipient of an outbound message; history is included when the e-mail is read alone, for 30 days */
    deliveries: EmailDelivery[]
    /** the earlier e-mail with the same envelope and content, within 24 h (RFC 1047) */
    duplicate_of: string | null
    delivery: Delivery
  }
  'email.deferred': {
    id: string
    identity_id: string
    thread_id: string
    direction: 'inbound' | 'outbound'
    status: EmailStatus
    from: string
    from_name: string
    to: string
    subject: string
    snippet: string
    read: boolean
    spam: boolean
    /** whether the message claims to be generated by a program; not authenticated */
    automated: boolean
    /** the part after + in the recipient address */
    tag: string | null
    labels: string[]
    size: number
    has_attachments: boolean
    verified_domain: string | null
    message_id: string | null
    in_reply_to: string | null
    codes: string[]
    received_at: string
    /** when the first server of a recipient, or a relay, accepted it */
    sent_at: string | null
    created_at: string
    /** time of deletion; only in the trash */
    deleted_at?: string | undefined
    body_text: string | null
    body_html: string | null
    text: string
    references: string[]
    reply_to: string | null
    /** whether verified_domain also covers reply_to; false: a forwarder may have added it, and reply goes to from unless specified; null when there is no reply_to, or from is not verified */
    reply_to_verified: boolean | null
    cc: Address[]
    bcc: Address[]
    recipients: {
      to: Address[]
      cc: Address[]
      bcc: Address[]
    }
    body_truncated?: boolean | undefined
    links: Link[]
    attachments: Attachment[]
    authentication: Authentication | null
    /** what is hidden in a received message or instructs its reader; null for others, and for messages of older versions */
    screening: Screening | null
    /** why a received message was set aside, until it is released */
    set_aside: 'blocked_sender' | 'unlisted_sender' | 'unverified_sender' | 'suspicious' | null
    /** of an outbound message held for a person; null for others */
    hold: HoldState | null
    parse_error: string | null
    /** time at which a scheduled message is sent */
    send_at: string | null
    /** the key or session that sent or scheduled an outbound message; null for others, and for messages of older versions */
    created_by: string | null
    /** one for each recipient of an outbound message; history is included when the e-mail is read alone, for 30 days */
    deliveries: EmailDelivery[]
    /** the earlier e-mail with the same envelope and content, within 24 h (RFC 1047) */
    duplicate_of: string | null
    delivery: Delivery
  }
  'email.bounced': {
    id: string
    identity_id: string
    thread_id: string
    direction: 'inbound' | 'outbound'
    status: EmailStatus
    from: string
    from_name: string
    to: string
    subject: string
    snippet: string
    read: boolean
    spam: boolean
    /** whether the message claims to be generated by a program; not authenticated */
    automated: boolean
    /** the part after + in the recipient address */
    tag: string | null
    labels: string[]
    size: number
    has_attachments: boolean
    verified_domain: string | null
    message_id: string | null
    in_reply_to: string | null
    codes: string[]
    received_at: string
    /** when the first server of a recipient, or a relay, accepted it */
    sent_at: string | null
    created_at: string
    /** time of deletion; only in the trash */
    deleted_at?: string | undefined
    body_text: string | null
    body_html: string | null
    text: string
    references: string[]
    reply_to: string | null
    /** whether verified_domain also covers reply_to; false: a forwarder may have added it, and reply goes to from unless specified; null when there is no reply_to, or from is not verified */
    reply_to_verified: boolean | null
    cc: Address[]
    bcc: Address[]
    recipients: {
      to: Address[]
      cc: Address[]
      bcc: Address[]
    }
    body_truncated?: boolean | undefined
    links: Link[]
    attachments: Attachment[]
    authentication: Authentication | null
    /** what is hidden in a received message or instructs its reader; null for others, and for messages of older versions */
    screening: Screening | null
    /** why a received message was set aside, until it is released */
    set_aside: 'blocked_sender' | 'unlisted_sender' | 'unverified_sender' | 'suspicious' | null
    /** of an outbound message held for a person; null for others */
    hold: HoldState | null
    parse_error: string | null
    /** time at which a scheduled message is sent */
    send_at: string | null
    /** the key or session that sent or scheduled an outbound message; null for others, and for messages of older versions */
    created_by: string | null
    /** one for each recipient of an outbound message; history is included when the e-mail is read alone, for 30 days */
    deliveries: EmailDelivery[]
    /** the earlier e-mail with the same envelope and content, within 24 h (RFC 1047) */
    duplicate_of: string | null
    delivery: Delivery
  }
  'email.complained': {
    id: string
    identity_id: string
    thread_id: string
    direction: 'inbound' | 'outbound'
    status: EmailStatus
    from: string
    from_name: string
    to: string
    subject: string
    snippet: string
    read: boolean
    spam: boolean
    /** whether the message claims to be generated by a program; not authenticated */
    automated: boolean
    /** the part after + in the recipient address */
    tag: string | null
    labels: string[]
    size: number
    has_attachments: boolean
    verified_domain: string | null
    message_id: string | null
    in_reply_to: string | null
    codes: string[]
    received_at: string
    /** when the first server of a recipient, or a relay, accepted it */
    sent_at: string | null
    created_at: string
    /** time of deletion; only in the trash */
    deleted_at?: string | undefined
    body_text: string | null
    body_html: string | null
    text: string
    references: string[]
    reply_to: string | null
    /** whether verified_domain also covers reply_to; false: a forwarder may have added it, and reply goes to from unless specified; null when there is no reply_to, or from is not verified */
    reply_to_verified: boolean | null
    cc: Address[]
    bcc: Address[]
    recipients: {
      to: Address[]
      cc: Address[]
      bcc: Address[]
    }
    body_truncated?: boolean | undefined
    links: Link[]
    attachments: Attachment[]
    authentication: Authentication | null
    /** what is hidden in a received message or instructs its reader; null for others, and for messages of older versions */
    screening: Screening | null
    /** why a received message was set aside, until it is released */
    set_aside: 'blocked_sender' | 'unlisted_sender' | 'unverified_sender' | 'suspicious' | null
    /** of an outbound message held for a person; null for others */
    hold: HoldState | null
    parse_error: string | null
    /** time at which a scheduled message is sent */
    send_at: string | null
    /** the key or session that sent or scheduled an outbound message; null for others, and for messages of older versions */
    created_by: string | null
    /** one for each recipient of an outbound message; history is included when the e-mail is read alone, for 30 days */
    deliveries: EmailDelivery[]
    /** the earlier e-mail with the same envelope and content, within 24 h (RFC 1047) */
    duplicate_of: string | null
    delivery: Delivery
  }
  'email.failed': {
    id: string
    identity_id: string
    thread_id: string
    direction: 'inbound' | 'outbound'
    status: EmailStatus
    from: string
    from_name: string
    to: string
    subject: string
    snippet: string
    read: boolean
    spam: boolean
    /** whether the message claims to be generated by a program; not authenticated */
    automated: boolean
    /** the part after + in the recipient address */
    tag: string | null
    labels: string[]
    size: number
    has_attachments: boolean
    verified_domain: string | null
    message_id: string | null
    in_reply_to: string | null
    codes: string[]
    received_at: string
    /** when the first server of a recipient, or a relay, accepted it */
    sent_at: string | null
    created_at: string
    /** time of deletion; only in the trash */
    deleted_at?: string | undefined
    body_text: string | null
    body_html: string | null
    text: string
    references: string[]
    reply_to: string | null
    /** whether verified_domain also covers reply_to; false: a forwarder may have added it, and reply goes to from unless specified; null when there is no reply_to, or from is not verified */
    reply_to_verified: boolean | null
    cc: Address[]
    bcc: Address[]
    recipients: {
      to: Address[]
      cc: Address[]
      bcc: Address[]
    }
    body_truncated?: boolean | undefined
    links: Link[]
    attachments: Attachment[]
    authentication: Authentication | null
    /** what is hidden in a received message or instructs its reader; null for others, and for messages of older versions */
    screening: Screening | null
    /** why a received message was set aside, until it is released */
    set_aside: 'blocked_sender' | 'unlisted_sender' | 'unverified_sender' | 'suspicious' | null
    /** of an outbound message held for a person; null for others */
    hold: HoldState | null
    parse_error: string | null
    /** time at which a scheduled message is sent */
    send_at: string | null
    /** the key or session that sent or scheduled an outbound message; null for others, and for messages of older versions */
    created_by: string | null
    /** one for each recipient of an outbound message; history is included when the e-mail is read alone, for 30 days */
    deliveries: EmailDelivery[]
    /** the earlier e-mail with the same envelope and content, within 24 h (RFC 1047) */
    duplicate_of: string | null
    delivery: Delivery
  }
  'email.cancelled': Email
  'email.held': Email
  'email.approved': Email
  'email.rejected': Email
  'email.expired': Email
  'sms.received': Sms
  'sms.sent': Sms
  'sms.delivered': Sms
  'sms.failed': Sms
  'sms.held': Sms
  'sms.approved': Sms
  'sms.rejected': Sms
  'sms.expired': Sms
  'phone.provisioned': PhoneNumber
  'phone.released': PhoneNumber
  'totp.created': TotpEntry
  'totp.deleted': TotpEntry
  'totp.read': {
    id: string
    identity_id: string
    service_name: string
    key_id: string | null
    ip: string
    user_agent: string
  }
  'card.created': Card
  'card.revealed': CardRevealed
  'card.frozen': Card
  'card.unfrozen': Card
  'card.cancelled': Card
  'card.limits_updated': Card
  'card.held': HeldCard
  'card.approved': HeldCard
  'card.rejected': HeldCard
  'card.expired': HeldCard
  'login.created': LoginNoted
  'login.updated': LoginNoted
  'login.deleted': LoginNoted
  'login.revealed': {
    id: string
    identity_id: string
    label: string
    url: string | null
    purpose: string | null
    key_id: string | null
    ip: string
    user_agent: string
  }
  'login.held': HeldLogin
  'login.approved': HeldLogin
  'login.rejected': HeldLogin
  'login.expired': HeldLogin
  'agent.created': Agent
  'agent.updated': Agent
  'agent.deleted': {
    id: string
    identity_id: string
    handle: string
    did: string
    status: 'deleted'
  }
  'token.issued': {
    id: string
    identity_id: string
    audience: string
    expires_at: string
    /** the key or session that created it; null if it was created on the machine of the box, or before this was recorded */
    created_by: string | null
  }
  'token.revoked': TokensRevoked
  'reputation.updated': Reputation
  'reputation.reported': Report
  'webhook.created': WebhookNoted
  'webhook.updated': WebhookNoted
  'webhook.deleted': WebhookNoted
  'webhook.disabled': WebhookNoted
  'webhook.test': {
    webhook_id: string
  }
  'doctor.changed': DoctorChange
  'account.stopped': {
    id: string
    /** the person or key; null for the operator */
    by: string | null
    stopped_at: string | null
  }
  'account.resumed': {
    id: string
    /** the person or key; null for the operator */
    by: string | null
    stopped_at: string | null
  }
  'key.created': ApiKey
  'key.rotated': ApiKey
  'key.revoked': RevokedApiKey
}

export type EventType = keyof EventData

/** An event. The `data` of a resource that was deleted since is `{id, deleted: true}`. */
export type Event = {
  [Type in EventType]: {
    id: string
    type: Type
    /** The same as `type`. */
    event: Type
    identity_id: string | null
    created_at: string
    data: EventData[Type] & { deleted?: true }
  }
}[EventType]
