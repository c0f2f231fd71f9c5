-- What each box on the database tells of itself to the others: where it runs, its version and settings, how far its clock is ahead of that of the server,
-- and the longest time lately in which it did nothing; in milliseconds.
ALTER TABLE boxes ADD COLUMN name TEXT;
ALTER TABLE boxes ADD COLUMN report TEXT;
ALTER TABLE boxes ADD COLUMN clock_ahead BIGINT NOT NULL DEFAULT 0;
ALTER TABLE boxes ADD COLUMN delay BIGINT NOT NULL DEFAULT 0;
ALTER TABLE boxes ADD COLUMN delayed_at BIGINT NOT NULL DEFAULT 0;
-- The boxes that the others have taken for ended, until they run again.
CREATE TABLE lost_boxes (
  name TEXT PRIMARY KEY,
  seen_at BIGINT NOT NULL
);
