-- Times are ISO 8601 UTC text, JSON is text, flags are 0 and 1.

CREATE TABLE box (probed INTEGER NOT NULL);
INSERT INTO box VALUES (0);

-- Octets kept once, however many rows point at them: raw messages, and the bodies read from them.
CREATE TABLE blobs (
  id INTEGER PRIMARY KEY,
  size INTEGER NOT NULL,
  sha256 BLOB,
  deflated INTEGER NOT NULL,
  bytes BLOB NOT NULL
);

-- The log: what happened, in commit order. `blob_id` holds the long fields of `data`, deflated; `resource_id` is what `data` is about.
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL,
  account_id TEXT NOT NULL,
  identity_id TEXT,
  created_at TEXT NOT NULL,
  data TEXT NOT NULL,
  resource_id TEXT,
  blob_id INTEGER
);
CREATE INDEX events_by_identity ON events (identity_id, seq);
CREATE INDEX events_by_resource ON events (resource_id) WHERE resource_id IS NOT NULL;

CREATE TABLE identities (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,
  email TEXT NOT NULL,
  phone_number TEXT,
  date_of_birth TEXT NOT NULL,
  status TEXT NOT NULL,
  metadata TEXT NOT NULL,
  stored_bytes INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE UNIQUE INDEX identities_by_name ON identities (account_id, name_key) WHERE status <> 'deleted';
CREATE INDEX identities_by_account ON identities (account_id, seq);

-- An address belongs to its identity for ever.
CREATE TABLE addresses (
  address TEXT PRIMARY KEY,
  identity_id TEXT NOT NULL
) WITHOUT ROWID;

-- A `rate_limit` of NULL is whatever the settings say.
CREATE TABLE api_keys (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  label TEXT NOT NULL,
  scopes TEXT NOT NULL,
  key_prefix TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  previous_hash TEXT UNIQUE,
  previous_expires_at TEXT,
  identity_id TEXT,
  rate_limit INTEGER,
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  expires_at TEXT,
  revoked_at TEXT
);
CREATE INDEX api_keys_by_account ON api_keys (account_id, seq);

CREATE TABLE threads (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  identity_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  subject_key TEXT NOT NULL,
  participants_key TEXT NOT NULL,
  participants TEXT NOT NULL,
  message_count INTEGER NOT NULL,
  unread_count INTEGER NOT NULL,
  last_message_at TEXT NOT NULL,
  last_seq INTEGER NOT NULL,
  snippet TEXT NOT NULL
);
CREATE INDEX threads_by_identity ON threads (identity_id, last_seq);
CREATE INDEX threads_by_subject ON threads (identity_id, subject_key, participants_key);

-- `detail` holds what is shown but never looked for; `body_id` is the blob of the bodies.
CREATE TABLE emails (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  identity_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  direction TEXT NOT NULL,
  status TEXT NOT NULL,
  from_address TEXT NOT NULL,
  from_name TEXT NOT NULL,
  to_text TEXT NOT NULL,
  subject TEXT NOT NULL,
  snippet TEXT NOT NULL,
  read INTEGER NOT NULL,
  spam INTEGER NOT NULL,
  automated INTEGER NOT NULL,
  tag TEXT,
  labels TEXT NOT NULL,
  size INTEGER NOT NULL,
  has_attachments INTEGER NOT NULL,
  verified_domain TEXT,
  message_id TEXT,
  in_reply_to TEXT,
  codes TEXT NOT NULL,
  received_at TEXT NOT NULL,
  sent_at TEXT,
  created_at TEXT NOT NULL,
  detail TEXT NOT NULL,
  trace TEXT NOT NULL,
  duplicate_of TEXT,
  raw_id INTEGER NOT NULL,
  body_id INTEGER NOT NULL
);
CREATE INDEX emails_by_identity ON emails (identity_id, seq);
CREATE INDEX emails_by_thread ON emails (thread_id, seq);
CREATE INDEX emails_by_message_id ON emails (identity_id, message_id);
CREATE INDEX emails_unread ON emails (identity_id, seq) WHERE read = 0;
CREATE INDEX emails_by_raw ON emails (raw_id);

-- Rows are those of emails, by seq. `owner` is the identity, so that a search walks one mailbox only.
CREATE VIRTUAL TABLE emails_search USING fts5 (
  owner, sender, subject, body,
  content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

-- Answers to calls with an Idempotency-Key, kept 24 h.
CREATE TABLE idempotency_keys (
  holder TEXT NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  run_id TEXT NOT NULL,
  status INTEGER NOT NULL,
  location TEXT,
  body TEXT,
  sealed INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  PRIMARY KEY (holder, method, path, idempotency_key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
