-- Of several boxes on one database each adds to a row of its own, so that their transactions do not change the same row; the sum of all shards is what is used. One box
-- that has the database alone uses shard 0.
CREATE TABLE plan_use_shards (
  account_id TEXT NOT NULL,
  what TEXT NOT NULL,
  period TEXT NOT NULL,
  used INTEGER NOT NULL,
  shard INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, what, period, shard)
) WITHOUT ROWID;
INSERT INTO plan_use_shards SELECT account_id, what, period, used, 0 FROM plan_use;
DROP TABLE plan_use;
ALTER TABLE plan_use_shards RENAME TO plan_use;
