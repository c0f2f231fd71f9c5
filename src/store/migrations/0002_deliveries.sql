-- How far each follower of the log has read; moves in the transaction of what its reading writes.
CREATE TABLE bookmarks (
  name TEXT PRIMARY KEY,
  seq INTEGER NOT NULL
) WITHOUT ROWID;

-- What leaves the box, and what became of it. A lane is a destination; `tries` is the place in the schedule, `attempts` counts them all.
-- state: waiting, running, done, failed.
CREATE TABLE deliveries_queue (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  lane TEXT NOT NULL,
  load TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting',
  attempts INTEGER NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0,
  due_at TEXT NOT NULL,
  created_at TEXT NOT NULL,
  ended_at TEXT
);
CREATE INDEX deliveries_due ON deliveries_queue (kind, lane, due_at, seq) WHERE state = 'waiting';
CREATE INDEX deliveries_running ON deliveries_queue (seq) WHERE state = 'running';
CREATE INDEX deliveries_by_lane ON deliveries_queue (kind, lane, seq);
CREATE INDEX deliveries_ended ON deliveries_queue (ended_at) WHERE ended_at IS NOT NULL;

-- When each lane next has something due; NULL while it has nothing, or as much under way as it may. `sound` is 1 when its last attempt went
-- well, and soon; -1 when that took long, however it went; else 0, as for a new one. A closed lane takes nothing and is cleared bit by bit.
CREATE TABLE delivery_lanes (
  kind TEXT NOT NULL,
  lane TEXT NOT NULL,
  due_at TEXT,
  sound INTEGER NOT NULL DEFAULT 0,
  closed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, lane)
) WITHOUT ROWID;
CREATE INDEX lanes_due ON delivery_lanes (sound, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lanes_closed ON delivery_lanes (kind, lane) WHERE closed = 1;

-- An attempt is on disk before it is made; one without an end was cut off. outcome: done, failed, deferred, interrupted.
CREATE TABLE delivery_attempts (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery_seq INTEGER NOT NULL REFERENCES deliveries_queue (seq) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  ended_at TEXT,
  outcome TEXT,
  answer TEXT
);
CREATE INDEX attempts_by_delivery ON delivery_attempts (delivery_seq, number);

-- Secrets and headers are sealed. `after_seq` is the end of the log when the webhook was made: it hears what comes later.
CREATE TABLE webhooks (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  identity_id TEXT,
  url TEXT NOT NULL,
  events TEXT NOT NULL,
  scopes TEXT NOT NULL,
  active INTEGER NOT NULL,
  description TEXT,
  headers BLOB,
  secret BLOB NOT NULL,
  previous_secret BLOB,
  previous_expires_at TEXT,
  failing_since TEXT,
  disabled_at TEXT,
  disabled_reason TEXT,
  after_seq INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE INDEX webhooks_by_account ON webhooks (account_id, seq);
CREATE INDEX webhooks_by_identity ON webhooks (identity_id) WHERE identity_id IS NOT NULL;
