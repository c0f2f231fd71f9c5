-- The keys and sessions that a key or a webhook ends with, beside the one that made it: whoever gave a key a new secret, said where a webhook posts or
-- what it hears, or gave the secret to the key that did. Past `until` the secret that they know works no more.
CREATE TABLE credential_origins (
  id TEXT NOT NULL,
  origin_id TEXT NOT NULL,
  until TEXT,
  PRIMARY KEY (id, origin_id)
) WITHOUT ROWID;
CREATE INDEX credential_origins_by_origin ON credential_origins (origin_id);
INSERT INTO credential_origins (id, origin_id) SELECT id, rotated_by FROM api_keys WHERE rotated_by IS NOT NULL;
INSERT INTO credential_origins (id, origin_id) SELECT id, updated_by FROM webhooks WHERE updated_by IS NOT NULL;
DROP INDEX api_keys_by_rotator;
DROP INDEX webhooks_by_changer;
