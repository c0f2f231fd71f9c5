-- The same rows, by conditions and expressions that other engines have too.
DROP INDEX identities_former;
CREATE INDEX identities_former ON identities (account_id, substr(email, instr(email, '@') + 1), email) WHERE status = 'deleted' AND email NOT LIKE 'agent-__________@%';
DROP INDEX deliveries_by_event;
CREATE INDEX deliveries_by_event ON deliveries_queue (json_extract(load, '$.event_id')) WHERE kind = 'webhook';
