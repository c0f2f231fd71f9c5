-- Bytes of an identity's trash, so that no call adds up all of its items.
ALTER TABLE identities ADD COLUMN trash_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE identities SET trash_bytes = (SELECT coalesce(sum(octets), 0) FROM trash WHERE trash.identity_id = identities.id)
  WHERE id IN (SELECT identity_id FROM trash);
