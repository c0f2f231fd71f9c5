-- Revoked keys are deleted once nothing depends on them.
CREATE INDEX api_keys_revoked ON api_keys (seq) WHERE revoked_at IS NOT NULL;
