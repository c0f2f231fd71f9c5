-- What a kept answer is about, and the octets that it takes of its account's room. `identity_id` is empty once the identity was deleted. One that is not kept has no body: what it was about was deleted
-- (`octets` is 0 then), or there was no room for it. A call that left a memo is answered anew.
ALTER TABLE idempotency_keys ADD COLUMN identity_id TEXT;
ALTER TABLE idempotency_keys ADD COLUMN resource_id TEXT;
ALTER TABLE idempotency_keys ADD COLUMN octets INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idempotency_keys_by_identity ON idempotency_keys (identity_id) WHERE identity_id IS NOT NULL;
CREATE INDEX idempotency_keys_by_resource ON idempotency_keys (resource_id) WHERE resource_id IS NOT NULL;

-- those of the last day that messages were answered with, and of living identities alone
UPDATE idempotency_keys SET body = NULL WHERE path LIKE '/identities/%/emails%' OR path LIKE '/identities/%/sms%' OR path = '/sms/loopback/inject';
UPDATE idempotency_keys SET identity_id = substr(path, 13, 32) WHERE path LIKE '/identities/ident_%';
