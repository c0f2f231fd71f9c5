-- Reports to other domains on mail in their name (kind `dmarc`, RFC 9990) and on TLS sessions with their servers (`tls`, RFC 8460): one for each
-- UTC day (YYYY-MM-DD) and domain. `rows` are those in outbound_report_counts, `dropped` the messages or sessions beyond the bounds; `policy` is
-- JSON, as it was seen last. `done_at` is set once the report is in the queue, or will never be.
CREATE TABLE outbound_reports (
  kind TEXT NOT NULL,
  day TEXT NOT NULL,
  domain TEXT NOT NULL,
  policy TEXT NOT NULL,
  rows INTEGER NOT NULL DEFAULT 0,
  dropped INTEGER NOT NULL DEFAULT 0,
  due_at TEXT NOT NULL,
  done_at TEXT,
  PRIMARY KEY (kind, day, domain)
) WITHOUT ROWID;
CREATE INDEX outbound_reports_due ON outbound_reports (due_at) WHERE done_at IS NULL;

-- How often each result occurred: `record` is JSON, `key` its SHA-256.
CREATE TABLE outbound_report_counts (
  kind TEXT NOT NULL,
  day TEXT NOT NULL,
  domain TEXT NOT NULL,
  key BLOB NOT NULL,
  record TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (kind, day, domain, key)
) WITHOUT ROWID;

-- What is on its way to one destination, an address or an https URL: a whole signed message, or the octets to post.
CREATE TABLE outbound_report_messages (
  id TEXT PRIMARY KEY,
  content BLOB NOT NULL,
  created_at TEXT NOT NULL
);

-- Destinations that took no report, and until when they get none.
CREATE TABLE outbound_report_refusals (
  destination TEXT PRIMARY KEY,
  until TEXT NOT NULL
);
