-- The keys the box signs with. Private halves are sealed, and gone once a key is retired.
CREATE TABLE signing_keys (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  kid TEXT NOT NULL UNIQUE,
  public_key TEXT NOT NULL,
  private_key BLOB,
  state TEXT NOT NULL,
  created_at TEXT NOT NULL,
  activated_at TEXT,
  published_until TEXT
);
CREATE UNIQUE INDEX signing_keys_living ON signing_keys (state) WHERE state <> 'retired';

-- How often the tokens of an identity were revoked: a token names the generation it is of.
CREATE TABLE token_generations (
  identity_id TEXT PRIMARY KEY,
  generation INTEGER NOT NULL
);
