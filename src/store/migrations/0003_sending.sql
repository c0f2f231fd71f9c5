-- A domain that the box hosts, or is to host. `receives` is set once it was verified (and for the default domain): from then on it takes
-- mail until it is deleted. `findings` is what the last check saw of each record.
CREATE TABLE domains (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  is_default INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL DEFAULT 'pending',
  receives INTEGER NOT NULL DEFAULT 0,
  findings TEXT NOT NULL DEFAULT '{}',
  checks INTEGER NOT NULL DEFAULT 0,
  failing_since TEXT,
  verified_at TEXT,
  last_checked_at TEXT,
  next_check_at TEXT,
  created_at TEXT NOT NULL,
  UNIQUE (account_id, name)
);
-- one account holds a name verified
CREATE UNIQUE INDEX domains_held ON domains (name) WHERE receives = 1;
CREATE INDEX domains_due ON domains (next_check_at) WHERE next_check_at IS NOT NULL;

-- The keys that sign for a domain. state: active, spare, retired. The private key (PKCS #8) is sealed; `public_text` is the value of p=.
CREATE TABLE dkim_keys (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  domain_id TEXT NOT NULL,
  selector TEXT NOT NULL,
  algorithm TEXT NOT NULL,
  private_key BLOB NOT NULL,
  public_text TEXT NOT NULL,
  state TEXT NOT NULL,
  created_at TEXT NOT NULL,
  activated_at TEXT,
  retired_at TEXT,
  UNIQUE (domain_id, selector)
);

-- What others report of mail in a domain's name: DMARC aggregates (RFC 9990) and TLS reports (RFC 8460). `kind`: dmarc, tls; `verified`: it
-- came with a DMARC pass.
CREATE TABLE domain_reports (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  domain_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  reporter TEXT NOT NULL,
  report_id TEXT NOT NULL,
  begins_at TEXT,
  ends_at TEXT,
  verified INTEGER NOT NULL DEFAULT 0,
  received_at TEXT NOT NULL,
  data TEXT NOT NULL,
  UNIQUE (domain_id, kind, reporter, report_id)
);

-- One row for each recipient of a message of ours, and where its delivery stands. `field`: to, cc, bcc; `delivery_id` is that of the queue.
CREATE TABLE email_recipients (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  email_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  field TEXT NOT NULL,
  address TEXT NOT NULL,
  status TEXT NOT NULL,
  smtp_code INTEGER,
  enhanced_code TEXT,
  response TEXT,
  mx TEXT,
  tls TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_at TEXT,
  delivered_at TEXT,
  bounced_at TEXT,
  complained_at TEXT,
  delivery_id TEXT,
  UNIQUE (email_id, position)
);

-- Who wants no more mail, or cannot be reached.
CREATE TABLE suppressions (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  email TEXT NOT NULL,
  reason TEXT NOT NULL,
  source TEXT NOT NULL,
  email_id TEXT,
  created_at TEXT NOT NULL,
  UNIQUE (account_id, email)
);

-- What an identity and a domain have sent, in recipients, by the hour (`2026-11-20T10`): for rates and the ramp. `subject` is an id or name.
CREATE TABLE sent_counts (
  subject TEXT NOT NULL,
  hour TEXT NOT NULL,
  recipients INTEGER NOT NULL,
  PRIMARY KEY (subject, hour)
) WITHOUT ROWID;

-- Policies of other domains (RFC 8461), kept for as long as they ask.
CREATE TABLE mta_sts_policies (
  domain TEXT PRIMARY KEY,
  policy_id TEXT NOT NULL,
  policy TEXT NOT NULL,
  expires_at TEXT NOT NULL
) WITHOUT ROWID;

-- Mail servers that were spoken to over TLS with a good certificate; `missed_at`: when one of them first had no TLS since.
CREATE TABLE tls_servers (
  hostname TEXT PRIMARY KEY,
  checked_at TEXT NOT NULL,
  missed_at TEXT
) WITHOUT ROWID;
