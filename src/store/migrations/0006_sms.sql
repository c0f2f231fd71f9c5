-- A number of an identity. status: wanted (a purchase may be under way: its id is the name it is bought under), active, releasing, released,
-- void (nothing came of it). `provider_id` is what the provider calls the number.
CREATE TABLE phone_numbers (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  identity_id TEXT,
  provider TEXT NOT NULL,
  provider_id TEXT,
  number TEXT,
  country TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at TEXT NOT NULL,
  released_at TEXT
);
CREATE UNIQUE INDEX phone_numbers_held ON phone_numbers (number) WHERE status IN ('active', 'releasing');
CREATE UNIQUE INDEX phone_numbers_by_identity ON phone_numbers (identity_id) WHERE status IN ('wanted', 'active') AND identity_id IS NOT NULL;
CREATE INDEX phone_numbers_by_number ON phone_numbers (number);

-- `attempting` is 1 from the moment an attempt to send is on disk until its end is: where it is still 1 later, nobody knows what came of it.
CREATE TABLE sms (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
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
  attempting INTEGER NOT NULL DEFAULT 0,
  lost INTEGER NOT NULL DEFAULT 0,
  delivery_id TEXT,
  received_at TEXT NOT NULL,
  sent_at TEXT,
  delivered_at TEXT,
  created_at TEXT NOT NULL
);
CREATE INDEX sms_by_identity ON sms (identity_id, seq);
CREATE INDEX sms_unread ON sms (identity_id, seq) WHERE read = 0;
CREATE INDEX sms_by_provider ON sms (provider, provider_id) WHERE provider_id IS NOT NULL;

-- What came with a message. status: pending, kept, failed; `source` is where a pending one is fetched.
CREATE TABLE sms_media (
  sms_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  content_type TEXT NOT NULL,
  status TEXT NOT NULL,
  source TEXT,
  size INTEGER,
  sha256 TEXT,
  blob_id INTEGER,
  PRIMARY KEY (sms_id, position)
) WITHOUT ROWID;

-- What providers have handed in, also when it was deleted since: a repeat has no effect.
CREATE TABLE sms_seen (
  provider TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  PRIMARY KEY (provider, provider_id)
) WITHOUT ROWID;

-- Who said STOP to which of our numbers.
CREATE TABLE sms_opt_outs (
  number TEXT NOT NULL,
  peer TEXT NOT NULL,
  since TEXT NOT NULL,
  PRIMARY KEY (number, peer)
) WITHOUT ROWID;
