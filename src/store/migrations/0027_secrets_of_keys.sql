-- How often a key was given a new secret: the number of the one that it has, by which what was made with a former one is told from the rest.
ALTER TABLE api_keys ADD COLUMN rotations INTEGER NOT NULL DEFAULT 0;

-- Of a key that was revoked: whether what was made with it stayed.
ALTER TABLE api_keys ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;

-- What a key scheduled is found when the key is revoked.
CREATE INDEX emails_scheduled ON emails (json_extract(detail, '$.created_by')) WHERE status = 'scheduled';
