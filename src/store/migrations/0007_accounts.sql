-- How the person of an account signs in. The second factor is sealed; until it is confirmed it counts for nothing.
CREATE TABLE logins (
  account_id TEXT PRIMARY KEY,
  email TEXT NOT NULL,
  -- without regard to case
  email_folded TEXT NOT NULL UNIQUE,
  -- argon2id, as a PHC string
  password TEXT NOT NULL,
  second_factor BLOB,
  confirmed_at TEXT,
  -- the time step of the last code that was taken: none is taken twice
  last_step INTEGER NOT NULL DEFAULT 0,
  changed_at TEXT NOT NULL
);

-- SHA-256 of codes of 80 random bits, each of which stands in for the second factor once.
CREATE TABLE recovery_codes (
  account_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (account_id, hash)
);

-- Who is signed in, under the SHA-256 of what their browser keeps.
CREATE TABLE sessions (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  ip TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  created_at TEXT NOT NULL,
  last_used_at TEXT NOT NULL
);
CREATE INDEX sessions_by_account ON sessions (account_id, seq);
