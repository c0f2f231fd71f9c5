-- Sealed secrets, apart from what is told of their entries. A row never changes its size or place, and is never removed, so that no copy
-- of it is left behind in the file; deleting the entry writes zeros over it.
CREATE TABLE totp_secrets (
  totp_seq INTEGER PRIMARY KEY,
  secret BLOB NOT NULL
);
INSERT INTO totp_secrets (totp_seq, secret) SELECT seq, secret FROM totp_entries ORDER BY seq;
UPDATE totp_entries SET secret = zeroblob(length(secret));
ALTER TABLE totp_entries DROP COLUMN secret;
