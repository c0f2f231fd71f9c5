-- Who made a key, a webhook or a job: the id of a key or a session; null on the machine of the box, and for what was made before this was kept.
ALTER TABLE api_keys ADD COLUMN created_by TEXT;
-- who gave a key its present secret, other than the key itself
ALTER TABLE api_keys ADD COLUMN rotated_by TEXT;
CREATE INDEX api_keys_by_maker ON api_keys (created_by) WHERE created_by IS NOT NULL;
CREATE INDEX api_keys_by_rotator ON api_keys (rotated_by) WHERE rotated_by IS NOT NULL;

ALTER TABLE webhooks ADD COLUMN created_by TEXT;
-- who last said where it posts, what it hears, or gave it its secret
ALTER TABLE webhooks ADD COLUMN updated_by TEXT;
-- when the key that made it expires, or was revoked
ALTER TABLE webhooks ADD COLUMN expires_at TEXT;
CREATE INDEX webhooks_by_maker ON webhooks (created_by) WHERE created_by IS NOT NULL;
CREATE INDEX webhooks_by_changer ON webhooks (updated_by) WHERE updated_by IS NOT NULL;
CREATE INDEX webhooks_expiring ON webhooks (expires_at) WHERE expires_at IS NOT NULL AND active = 1;

ALTER TABLE jobs ADD COLUMN created_by TEXT;
CREATE INDEX jobs_by_maker ON jobs (created_by) WHERE created_by IS NOT NULL;

-- IPv4 addresses and IPv6 /64s from which the person of an account signed in, the last ones: guesses of strangers elsewhere do not hold them up.
CREATE TABLE sign_in_networks (
  account_id TEXT NOT NULL,
  network TEXT NOT NULL,
  last_used_at TEXT NOT NULL,
  PRIMARY KEY (account_id, network)
) WITHOUT ROWID;
