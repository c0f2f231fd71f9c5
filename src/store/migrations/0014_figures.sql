-- What went on in each minute, and how things stood at its end, for a week. `at` is when the minute began; a minute in which the box did not
-- run has no row. Counts are of the minute; queue_depth, oldest_due (seconds), disk_free and database (octets) are as its end found them.
CREATE TABLE figures (
  at TEXT PRIMARY KEY,
  mail_in INTEGER NOT NULL,
  mail_refused INTEGER NOT NULL,
  mail_delivered INTEGER NOT NULL,
  mail_failed INTEGER NOT NULL,
  events INTEGER NOT NULL,
  webhooks_done INTEGER NOT NULL,
  webhooks_failed INTEGER NOT NULL,
  api_calls INTEGER NOT NULL,
  queue_depth INTEGER,
  oldest_due INTEGER,
  disk_free INTEGER,
  database INTEGER NOT NULL
) WITHOUT ROWID;
