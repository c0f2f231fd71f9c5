-- Links by which the first password of an account is set: the SHA-256 of 256 random bits, one for each account, gone once used.
CREATE TABLE setup_links (
  account_id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  expires_at TEXT NOT NULL
);
