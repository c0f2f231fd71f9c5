-- A blob that is part of another is deleted with it: what the events of the copies of a message share is part of its bodies.
ALTER TABLE blobs ADD COLUMN part_of INTEGER REFERENCES blobs (id) ON DELETE CASCADE;
CREATE INDEX blobs_by_whole ON blobs (part_of) WHERE part_of IS NOT NULL;
