-- Secrets are sealed.
CREATE TABLE totp_entries (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  identity_id TEXT NOT NULL,
  service_name TEXT NOT NULL,
  account_name TEXT,
  algorithm TEXT NOT NULL,
  digits INTEGER NOT NULL,
  period INTEGER NOT NULL,
  secret BLOB NOT NULL,
  created_at TEXT NOT NULL
);
CREATE INDEX totp_entries_by_identity ON totp_entries (identity_id, seq);

-- The name of the master key that everything here is sealed under: it tells nothing of the key.
ALTER TABLE box ADD COLUMN master_key_name TEXT;
