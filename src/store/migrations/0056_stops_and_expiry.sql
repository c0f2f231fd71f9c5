-- Accounts that were stopped: their keys do nothing, and nothing leaves.
CREATE TABLE stopped_accounts (
  account_id TEXT PRIMARY KEY,
  stopped_at TEXT NOT NULL,
  -- the person or key; null for the operator
  stopped_by TEXT
) WITHOUT ROWID;

-- When an identity is deleted; null: when someone deletes it.
ALTER TABLE identities ADD COLUMN expires_at TEXT;
CREATE INDEX identities_expiring ON identities (expires_at) WHERE expires_at IS NOT NULL AND status <> 'deleted';
