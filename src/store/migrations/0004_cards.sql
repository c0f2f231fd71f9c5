-- `resets_at` is the end of the period in which `spent_cents` was written (NULL: never resets); `round` counts how often it went back to 0.
CREATE TABLE cards (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  identity_id TEXT NOT NULL,
  card_name TEXT NOT NULL,
  last4 TEXT NOT NULL,
  brand TEXT NOT NULL,
  exp_month INTEGER NOT NULL,
  exp_year INTEGER NOT NULL,
  status TEXT NOT NULL,
  currency TEXT NOT NULL,
  period TEXT NOT NULL,
  budget_cents INTEGER NOT NULL,
  spent_cents INTEGER NOT NULL DEFAULT 0,
  round INTEGER NOT NULL DEFAULT 0,
  resets_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE INDEX cards_by_identity ON cards (identity_id, seq);

-- What only the client can read of a card. A row never changes its size or place, so that no copy of it is left behind in the file;
-- cancelling writes zeros over it.
CREATE TABLE card_secrets (
  card_seq INTEGER PRIMARY KEY,
  encrypted_data BLOB NOT NULL
);

-- All that was revealed, refused and spent. `spent_cents` and `round` are those of the card after it.
CREATE TABLE card_transactions (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  card_id TEXT NOT NULL,
  type TEXT NOT NULL,
  amount_cents INTEGER,
  allowed INTEGER NOT NULL,
  reason TEXT,
  reveal_id TEXT,
  key_id TEXT,
  ip TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  purpose TEXT,
  description TEXT,
  spent_cents INTEGER NOT NULL,
  round INTEGER NOT NULL,
  created_at TEXT NOT NULL
);
CREATE INDEX card_transactions_by_card ON card_transactions (card_id, seq);
-- A reservation is replaced by the real amount once.
CREATE UNIQUE INDEX card_transactions_reported ON card_transactions (reveal_id) WHERE type = 'report';

-- What a repetition is answered from, where the answer itself must not be kept.
ALTER TABLE idempotency_keys ADD COLUMN memo TEXT;
