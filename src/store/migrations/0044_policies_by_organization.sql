-- Of each organizational domain (a name below a public suffix) at most fifty policies are stored. Empty for one that was stored before, until it is fetched again.
ALTER TABLE mta_sts_policies ADD COLUMN organizational_domain TEXT NOT NULL DEFAULT '';
CREATE INDEX mta_sts_policies_by_organization ON mta_sts_policies (organizational_domain, used_at);
