-- The addresses of an account's deleted identities, which stay reserved; without generated ones.
CREATE INDEX identities_former ON identities (account_id, email) WHERE status = 'deleted' AND email NOT GLOB 'agent-??????????@*';

-- Null for a handle of an agent that was deleted before.
ALTER TABLE agent_handles ADD COLUMN account_id TEXT;
UPDATE agent_handles SET account_id = (SELECT account_id FROM agents WHERE agents.id = agent_handles.agent_id);
CREATE INDEX agent_handles_by_account ON agent_handles (account_id, handle);

-- Numbers that were bought and released, or are being, and purchases that bought nothing.
CREATE INDEX phone_numbers_returned ON phone_numbers (account_id, released_at) WHERE status IN ('releasing', 'released') AND provider_id IS NOT NULL;
CREATE INDEX phone_numbers_void ON phone_numbers (provider, created_at) WHERE status = 'void';
