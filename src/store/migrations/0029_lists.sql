-- How often what the webhooks of an account ask for changed: what was read of it before is then out of date.
CREATE TABLE webhook_changes (
  account_id TEXT PRIMARY KEY,
  changes INTEGER NOT NULL
) WITHOUT ROWID;

-- Those that hear of an identity, in their order.
CREATE INDEX webhooks_listening ON webhooks (account_id, identity_id, seq) WHERE active = 1;

-- Lists in their order.
CREATE INDEX domains_by_account ON domains (account_id, seq);
CREATE INDEX domain_reports_by_domain ON domain_reports (domain_id, seq);
CREATE INDEX suppressions_by_account ON suppressions (account_id, seq);
