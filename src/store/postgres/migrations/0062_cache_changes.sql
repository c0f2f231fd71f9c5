-- The last change, by each run of a box, of what boxes keep in memory: each of several boxes on one database drops what it has of that kind.
CREATE TABLE cache_changes (
  kind TEXT NOT NULL,
  run_id TEXT NOT NULL,
  mark TEXT NOT NULL,
  changed_at BIGINT NOT NULL,
  PRIMARY KEY (kind, run_id)
);
