-- What an account has used of what its plan limits and nobody counts anew each time. `period` is a month in UTC (`2026-11`), or empty for what
-- is kept.
CREATE TABLE plan_use (
  account_id TEXT NOT NULL,
  what TEXT NOT NULL,
  period TEXT NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (account_id, what, period)
) WITHOUT ROWID;

-- Octets that came with text messages, as `stored_bytes` is those of e-mail.
ALTER TABLE identities ADD COLUMN media_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE identities SET media_bytes = (
  SELECT coalesce(sum(sms_media.size), 0) FROM sms JOIN sms_media ON sms_media.sms_id = sms.id
    WHERE sms.identity_id = identities.id AND sms_media.status = 'kept'
);

INSERT INTO plan_use (account_id, what, period, used)
  SELECT account_id, 'storage_bytes', '', sum(stored_bytes + media_bytes) FROM identities WHERE status <> 'deleted' GROUP BY account_id;
INSERT INTO plan_use (account_id, what, period, used)
  SELECT identities.account_id, 'emails_sent', substr(emails.received_at, 1, 7), count(*) FROM emails
    JOIN identities ON identities.id = emails.identity_id WHERE direction = 'outbound' AND emails.status <> 'cancelled'
    GROUP BY identities.account_id, substr(emails.received_at, 1, 7);
INSERT INTO plan_use (account_id, what, period, used)
  SELECT account_id, 'sms_sent', substr(created_at, 1, 7), count(*) FROM sms WHERE direction = 'outbound'
    GROUP BY account_id, substr(created_at, 1, 7);

-- What is counted when one more is made.
CREATE INDEX api_keys_living ON api_keys (account_id, expires_at, identity_id) WHERE revoked_at IS NULL;
CREATE INDEX phone_numbers_by_account ON phone_numbers (account_id) WHERE status IN ('wanted', 'active');
CREATE INDEX cards_by_account ON cards (account_id) WHERE status <> 'cancelled';
CREATE INDEX totp_entries_by_account ON totp_entries (account_id);
