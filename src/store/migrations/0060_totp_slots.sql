-- The secret of a one-time password has a slot, which is used again for another of the same size once its entry is deleted, as those of logins are: what
-- is deleted leaves no more rows than there were entries at once.
ALTER TABLE totp_secrets RENAME COLUMN totp_seq TO slot;
ALTER TABLE totp_secrets ADD COLUMN free INTEGER NOT NULL DEFAULT 0;
ALTER TABLE totp_entries ADD COLUMN secret_slot INTEGER;
UPDATE totp_entries SET secret_slot = seq;
UPDATE totp_secrets SET free = 1 WHERE slot NOT IN (SELECT seq FROM totp_entries);
CREATE INDEX totp_secrets_free ON totp_secrets (length(secret)) WHERE free = 1;
