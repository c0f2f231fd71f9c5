-- Of a key that was made with a former secret, or by a key that was: until when that secret was to work. It schedules nothing for later, and
-- revokes nothing but itself and what it made.
ALTER TABLE api_keys ADD COLUMN former_until TEXT;

-- Of keys that exist: those that end with a former secret of one above them, and so may have been made with it.
WITH RECURSIVE line (id, expires_at, maker) AS (
  SELECT id, expires_at, created_by FROM api_keys WHERE expires_at IS NOT NULL AND revoked_at IS NULL
  UNION
  SELECT line.id, line.expires_at, api_keys.created_by FROM line JOIN api_keys ON api_keys.id = line.maker
)
UPDATE api_keys SET former_until = expires_at WHERE id IN (
  SELECT line.id FROM line JOIN api_keys AS above ON above.id = line.maker
  WHERE above.previous_hash IS NOT NULL AND above.previous_expires_at >= line.expires_at
);
