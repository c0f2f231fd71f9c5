-- Long work that somebody asked for, and how far it is. status: running, done, failed, cancelled. `scopes` are those a caller must hold to
-- see it, with spaces between and around; `result` is JSON.
CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  identity_id TEXT,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  done INTEGER NOT NULL DEFAULT 0,
  total INTEGER,
  unit TEXT NOT NULL DEFAULT 'steps',
  scopes TEXT NOT NULL,
  result TEXT,
  error TEXT,
  created_at TEXT NOT NULL,
  finished_at TEXT
);
CREATE INDEX jobs_by_account ON jobs (account_id, seq);
CREATE INDEX jobs_by_identity ON jobs (identity_id) WHERE identity_id IS NOT NULL;
CREATE INDEX jobs_running ON jobs (seq) WHERE status = 'running';
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;
