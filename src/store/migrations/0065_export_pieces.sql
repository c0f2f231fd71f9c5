-- The files of exports, in pieces, where several boxes are on one database; one box alone has them in its data directory.
CREATE TABLE export_pieces (
  job_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  stored_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, number)
);
