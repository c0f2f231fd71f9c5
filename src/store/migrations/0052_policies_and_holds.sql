-- What may leave an identity, or all of an account (`subject_id`), as JSON.
CREATE TABLE policies (
  subject_id TEXT PRIMARY KEY,
  policy TEXT NOT NULL,
  updated_at TEXT NOT NULL
) WITHOUT ROWID;

-- What waits for a person, and what became of it. `about` is the message or the card; `sha256` is that of the bytes that were held.
CREATE TABLE holds (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  identity_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  about TEXT NOT NULL,
  status TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  -- why it was held, as JSON; not for the sender
  reasons TEXT NOT NULL,
  created_by TEXT,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  decided_at TEXT,
  decided_by TEXT,
  -- what the person says to the sender
  reason TEXT,
  -- 1 once its key was revoked: it is cancelled soon after
  ended INTEGER NOT NULL DEFAULT 0,
  -- of a card: what is to be revealed, and when an approval was used
  amount_cents INTEGER,
  purpose TEXT,
  used_at TEXT
);
CREATE INDEX holds_by_account ON holds (account_id, seq);
CREATE INDEX holds_by_subject ON holds (about);
CREATE INDEX holds_by_decision ON holds (decided_at);
CREATE INDEX holds_open ON holds (expires_at) WHERE status = 'open';
CREATE INDEX holds_open_by_identity ON holds (identity_id) WHERE status = 'open';
-- e-mails are found by their own index, below
CREATE INDEX holds_open_by_creator ON holds (created_by) WHERE status = 'open' AND kind <> 'email';

-- Recipients that an identity had not heard from: when it first wrote to them, and whether a person approved that.
CREATE TABLE contacts (
  identity_id TEXT NOT NULL,
  address TEXT NOT NULL,
  first_at TEXT NOT NULL,
  approved INTEGER NOT NULL,
  PRIMARY KEY (identity_id, address)
) WITHOUT ROWID;
CREATE INDEX contacts_by_time ON contacts (identity_id, first_at);

CREATE INDEX emails_by_verified_author ON emails (identity_id, lower(from_address))
  WHERE direction = 'inbound' AND verified_domain IS NOT NULL AND octet_length(from_address) <= 1000;
CREATE INDEX emails_held ON emails (json_extract(detail, '$.created_by')) WHERE status = 'held';

-- What became of the hold of a text message, as JSON.
ALTER TABLE sms ADD COLUMN hold TEXT;
ALTER TABLE sms_trash ADD COLUMN hold TEXT;
