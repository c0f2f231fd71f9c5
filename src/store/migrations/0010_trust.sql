-- A word on an event that is nobody's content, such as that a bounce was final: it stays when what the event carries is erased.
ALTER TABLE events ADD COLUMN remark TEXT;

-- What the log says of each identity, counted. Weights of reports are in thousandths. `tier` is the one that was last told.
CREATE TABLE reputations (
  identity_id TEXT PRIMARY KEY,
  deliveries INTEGER NOT NULL DEFAULT 0,
  bounces INTEGER NOT NULL DEFAULT 0,
  complaints INTEGER NOT NULL DEFAULT 0,
  replies INTEGER NOT NULL DEFAULT 0,
  tokens INTEGER NOT NULL DEFAULT 0,
  positive INTEGER NOT NULL DEFAULT 0,
  negative INTEGER NOT NULL DEFAULT 0,
  disputed INTEGER NOT NULL DEFAULT 0,
  tier TEXT NOT NULL,
  updated_at TEXT NOT NULL
) WITHOUT ROWID;

-- What one account said of somebody. `subject` is an identity of the box, or a DID or address that is not of it; `counted` is in thousandths.
CREATE TABLE reputation_reports (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  identity_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  type TEXT NOT NULL,
  counted INTEGER NOT NULL,
  created_at TEXT NOT NULL
);
CREATE INDEX reputation_reports_by_subject ON reputation_reports (subject, account_id, type);
