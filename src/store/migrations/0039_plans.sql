-- Without statistics SQLite takes an index wherever there is one. Those of a box that held little made it read whole tables once the box had grown.
DROP TABLE IF EXISTS sqlite_stat1;

-- The identities at a domain, and how many there are.
CREATE INDEX identities_by_domain ON identities (substr(email, instr(email, '@') + 1), status) WHERE status <> 'deleted';

-- The last of the conversations with the same subject and participants.
DROP INDEX threads_by_subject;
CREATE INDEX threads_by_subject ON threads (identity_id, subject_key, participants_key, last_message_at);

CREATE INDEX phone_numbers_active ON phone_numbers (identity_id) WHERE status = 'active';
