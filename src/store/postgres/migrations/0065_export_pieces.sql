-- The files of exports, in pieces, where several boxes are on one database; one box alone has them in its data directory.
CREATE TABLE export_pieces (
  job_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  bytes BYTEA NOT NULL,
  stored_at BIGINT NOT NULL,
  PRIMARY KEY (job_id, number)
);
