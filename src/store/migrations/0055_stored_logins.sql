-- Logins that an identity has elsewhere; user names and secrets are sealed, in slots of a table of their own.
CREATE TABLE stored_logins (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  identity_id TEXT NOT NULL,
  label TEXT NOT NULL,
  url TEXT,
  -- what a person approves a first reveal for: the host of the URL, or the login itself
  place TEXT NOT NULL,
  username_slot INTEGER NOT NULL,
  secrets_slot INTEGER NOT NULL,
  has_password INTEGER NOT NULL,
  has_api_key INTEGER NOT NULL,
  has_notes INTEGER NOT NULL,
  totp_id TEXT,
  -- as counted in the storage of the account
  octets INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE INDEX stored_logins_by_identity ON stored_logins (identity_id, seq);

-- Sealed texts. A row never changes its size or place, and is never removed, so that no copy of it is left behind in the file: it is overwritten with
-- zeros, and used again for a text of its size.
CREATE TABLE login_secrets (
  slot INTEGER PRIMARY KEY,
  free INTEGER NOT NULL,
  secret BLOB NOT NULL
);
CREATE INDEX login_secrets_free ON login_secrets (length(secret)) WHERE free = 1;
