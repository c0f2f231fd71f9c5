-- What a person has granted to a program by OAuth: a key that nobody knows the secret of, and the tokens that stand for it.
CREATE TABLE oauth_grants (
  key_id TEXT PRIMARY KEY REFERENCES api_keys (id) ON DELETE CASCADE,
  client_id TEXT NOT NULL,
  access_hash TEXT NOT NULL UNIQUE,
  access_until TEXT NOT NULL,
  refresh_hash TEXT NOT NULL UNIQUE,
  refresh_until TEXT NOT NULL,
  -- the refresh token before, which nobody but a thief uses again
  former_hash TEXT UNIQUE
);
