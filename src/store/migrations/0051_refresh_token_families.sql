-- All refresh tokens of a grant begin alike, so that any earlier one is recognized when it is used again, not the last alone.
CREATE TABLE oauth_grants_after (
  key_id TEXT PRIMARY KEY REFERENCES api_keys (id) ON DELETE CASCADE,
  client_id TEXT NOT NULL,
  access_hash TEXT NOT NULL UNIQUE,
  access_until TEXT NOT NULL,
  refresh_hash TEXT NOT NULL UNIQUE,
  refresh_until TEXT NOT NULL,
  -- of that beginning; null for a grant from before, until its token is used
  family_hash TEXT UNIQUE
);
INSERT INTO oauth_grants_after SELECT key_id, client_id, access_hash, access_until, refresh_hash, refresh_until, NULL FROM oauth_grants;
DROP TABLE oauth_grants;
ALTER TABLE oauth_grants_after RENAME TO oauth_grants;
