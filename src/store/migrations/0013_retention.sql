-- What was deleted and can be brought back for a while, oldest first: an index over the tables below. `kind`: email, sms; `octets` are those
-- that it still takes of its account's room.
CREATE TABLE trash (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  account_id TEXT NOT NULL,
  identity_id TEXT NOT NULL,
  octets INTEGER NOT NULL,
  deleted_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX trash_by_age ON trash (deleted_at);
CREATE INDEX trash_by_identity ON trash (identity_id, deleted_at);
CREATE INDEX trash_by_account ON trash (account_id, deleted_at);

-- `raw_expired_at` is when the octets of a message were let go of; the row of the blob stays, empty, as its number must not be given again.
ALTER TABLE emails ADD COLUMN raw_expired_at TEXT;
CREATE INDEX emails_with_raw ON emails (received_at) WHERE raw_expired_at IS NULL;

-- Rows of emails that were deleted, as they were, where nothing looks for e-mails. Their recipients stay where they are.
CREATE TABLE emails_trash (
  seq INTEGER PRIMARY KEY,
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
  body_id INTEGER NOT NULL,
  raw_expired_at TEXT,
  deleted_at TEXT NOT NULL
);
CREATE INDEX emails_trash_by_identity ON emails_trash (identity_id, seq);
CREATE INDEX emails_trash_by_raw ON emails_trash (raw_id);

-- Likewise of text messages; their pictures stay where they are.
CREATE TABLE sms_trash (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  identity_id TEXT NOT NULL,
  direction TEXT NOT NULL,
  status TEXT NOT NULL,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL,
  read INTEGER NOT NULL,
  provider TEXT NOT NULL,
  provider_id TEXT,
  segments INTEGER NOT NULL,
  error TEXT,
  codes TEXT NOT NULL,
  attempting INTEGER NOT NULL,
  lost INTEGER NOT NULL,
  delivery_id TEXT,
  received_at TEXT NOT NULL,
  sent_at TEXT,
  delivered_at TEXT,
  created_at TEXT NOT NULL,
  deleted_at TEXT NOT NULL
);
CREATE INDEX sms_trash_by_identity ON sms_trash (identity_id, seq);

-- What events carried of what is in the trash: the log itself tells only that they happened.
CREATE TABLE hidden_events (
  seq INTEGER PRIMARY KEY,
  data TEXT NOT NULL,
  blob_id INTEGER
);

-- Identities that are gone, and whose messages go after a while.
CREATE TABLE identity_remains (
  identity_id TEXT PRIMARY KEY,
  deleted_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX identity_remains_by_age ON identity_remains (deleted_at);
INSERT INTO identity_remains (identity_id, deleted_at) SELECT id, updated_at FROM identities WHERE status = 'deleted';

-- Who ended a delivery that was not tried to its end.
ALTER TABLE deliveries_queue ADD COLUMN reason TEXT;
