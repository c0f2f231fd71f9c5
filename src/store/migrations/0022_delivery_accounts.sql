-- Accounts take turns at the queue: a lane is divided by the account whose deliveries wait in it; '' is the box's own, and what was enqueued before.
ALTER TABLE deliveries_queue ADD COLUMN account_id TEXT NOT NULL DEFAULT '';
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries_queue (kind, lane, account_id, due_at, seq) WHERE state = 'waiting';

CREATE TABLE account_lanes (
  kind TEXT NOT NULL,
  lane TEXT NOT NULL,
  account_id TEXT NOT NULL,
  due_at TEXT,
  sound INTEGER NOT NULL DEFAULT 0,
  closed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, lane, account_id)
) WITHOUT ROWID;
INSERT INTO account_lanes (kind, lane, account_id, due_at, sound, closed) SELECT kind, lane, '', due_at, sound, closed FROM delivery_lanes;
DROP TABLE delivery_lanes;
ALTER TABLE account_lanes RENAME TO delivery_lanes;
CREATE INDEX lanes_due ON delivery_lanes (sound, account_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lanes_closed ON delivery_lanes (kind, lane) WHERE closed = 1;
