-- Further addresses of a domain, each leading to an identity of the domain's account. Where it leads is in `addresses`, whose key keeps an address
-- from being two aliases, or an alias and an identity's own.
CREATE TABLE aliases (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  domain_id TEXT NOT NULL,
  address TEXT NOT NULL UNIQUE,
  created_at TEXT NOT NULL
);
CREATE INDEX aliases_by_domain ON aliases (domain_id, seq);

-- An address that never was an alias is its identity's for ever, and has no `alias_account_id`. That of an alias belongs to an account, which alone may
-- give it out again when the alias ended: then `identity_id` is empty.
ALTER TABLE addresses ADD COLUMN alias_id TEXT;
ALTER TABLE addresses ADD COLUMN alias_account_id TEXT;
CREATE INDEX addresses_of_aliases ON addresses (identity_id) WHERE alias_id IS NOT NULL;

-- The identity that receives what comes for unknown addresses of the domain.
ALTER TABLE domains ADD COLUMN catch_all TEXT;
CREATE INDEX domains_by_catch_all ON domains (catch_all) WHERE catch_all IS NOT NULL;
