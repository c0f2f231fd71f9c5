-- The first attempt of a delivery is in its row, as most have no other; later ones are in `delivery_attempts`, and so are first ones of before.
ALTER TABLE deliveries_queue ADD COLUMN first_started_at TEXT;
ALTER TABLE deliveries_queue ADD COLUMN first_ended_at TEXT;
ALTER TABLE deliveries_queue ADD COLUMN first_outcome TEXT;
ALTER TABLE deliveries_queue ADD COLUMN first_answer TEXT;
