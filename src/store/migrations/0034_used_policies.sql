-- When a policy was last asked for, to the day, so that those which nobody needs are deleted.
ALTER TABLE mta_sts_policies ADD COLUMN used_at TEXT NOT NULL DEFAULT '';
UPDATE mta_sts_policies SET used_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now');
CREATE INDEX mta_sts_policies_by_use ON mta_sts_policies (used_at);
CREATE INDEX mta_sts_policies_by_expiry ON mta_sts_policies (expires_at);
