-- The code of the refusal that ended a job; `error` is its message.
ALTER TABLE jobs ADD COLUMN error_code TEXT;

-- Octets of its account's room that a text message takes beside its pictures: its texts, and 256 for the row.
ALTER TABLE sms ADD COLUMN octets INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sms_trash ADD COLUMN octets INTEGER NOT NULL DEFAULT 0;
UPDATE sms SET octets = 256 + length(CAST(body AS BLOB)) + length(CAST(codes AS BLOB)) + coalesce(length(CAST(error AS BLOB)), 0);
UPDATE sms_trash SET octets = 256 + length(CAST(body AS BLOB)) + length(CAST(codes AS BLOB)) + coalesce(length(CAST(error AS BLOB)), 0);
UPDATE trash SET octets = octets + (SELECT sms_trash.octets FROM sms_trash WHERE sms_trash.id = trash.id)
  WHERE kind = 'sms' AND id IN (SELECT id FROM sms_trash);
INSERT INTO plan_use (account_id, what, period, used)
  SELECT identities.account_id, 'storage_bytes', '', sum(texts.octets) FROM (
    SELECT identity_id, octets FROM sms UNION ALL SELECT identity_id, octets FROM sms_trash
  ) AS texts JOIN identities ON identities.id = texts.identity_id WHERE identities.status <> 'deleted' GROUP BY identities.account_id
  ON CONFLICT (account_id, what, period) DO UPDATE SET used = used + excluded.used;
UPDATE identities SET media_bytes = media_bytes
    + (SELECT coalesce(sum(octets), 0) FROM sms WHERE sms.identity_id = identities.id)
    + (SELECT coalesce(sum(octets), 0) FROM sms_trash WHERE sms_trash.identity_id = identities.id)
  WHERE status <> 'deleted';

-- Octets of room that an imported e-mail takes beside its own: what its archive said of it.
ALTER TABLE emails ADD COLUMN extra_octets INTEGER NOT NULL DEFAULT 0;
ALTER TABLE emails_trash ADD COLUMN extra_octets INTEGER NOT NULL DEFAULT 0;

-- Whether a message of an archive is there already is asked for each of them.
CREATE INDEX sms_by_time ON sms (identity_id, received_at);
CREATE INDEX emails_unnamed ON emails (identity_id, size) WHERE message_id IS NULL;
