-- The chosen addresses of an account's deleted identities at one domain.
DROP INDEX identities_former;
CREATE INDEX identities_former ON identities (account_id, substr(email, instr(email, '@') + 1), email) WHERE status = 'deleted' AND email NOT GLOB 'agent-??????????@*';
