-- The first attempt of a delivery is in its row, as most have no other; later ones are in `delivery_attempts`, and so are first ones of before.
ALTER TABLE deliveries_queue ADD COLUMN first_started_at TEXT;
ALTER TABLE deliveries_queue ADD COLUMN first_ended_at TEXT;
ALTER TABLE deliveries_queue ADD COLUMN first_outcome TEXT;
ALTER TABLE deliveries_queue ADD COLUMN first_answer TEXT;
-- First attempts that were deferred, by their time; those that ended a delivery are found by when it ended.
CREATE INDEX deliveries_deferred ON deliveries_queue (first_started_at) WHERE state = 'waiting' AND first_started_at IS NOT NULL;
