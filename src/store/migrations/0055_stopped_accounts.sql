-- Accounts that were stopped: their keys do nothing, and nothing leaves.
CREATE TABLE stopped_accounts (
  account_id TEXT PRIMARY KEY,
  stopped_at TEXT NOT NULL,
  -- the person or key; null for the operator
  stopped_by TEXT
) WITHOUT ROWID;
