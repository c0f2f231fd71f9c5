-- Whether an author wrote in a thread before; nobody has a longer address than that.
CREATE INDEX emails_by_author ON emails (thread_id, lower(from_address)) WHERE direction = 'inbound' AND octet_length(from_address) <= 1000;

-- The automatic replies of the box in a thread.
CREATE INDEX emails_automatic ON emails (thread_id, received_at) WHERE direction = 'outbound' AND automated = 1;

-- The messages of a thread that are not duplicates are found without their rows.
DROP INDEX emails_by_thread;
CREATE INDEX emails_by_thread ON emails (thread_id, seq, duplicate_of);
