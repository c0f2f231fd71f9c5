-- The boxes that run on this database, on PostgreSQL; on SQLite there is one, which has no row.
CREATE TABLE boxes (
  run_id TEXT PRIMARY KEY,
  directory TEXT,
  seen_at INTEGER NOT NULL
);
-- What one of these boxes does for all: it keeps it until its run has ended.
CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  run_id TEXT NOT NULL
);
-- The run that attempts a delivery, and the run that works on a job.
ALTER TABLE deliveries_queue ADD COLUMN run_id TEXT;
ALTER TABLE jobs ADD COLUMN run_id TEXT;
-- By lane: one with work under way belongs to one box.
DROP INDEX deliveries_running;
CREATE INDEX deliveries_running ON deliveries_queue (kind, lane) WHERE state = 'running';
