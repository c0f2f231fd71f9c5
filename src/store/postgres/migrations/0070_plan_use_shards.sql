-- Of several boxes on one database each adds to a row of its own, so that their transactions do not change the same row; the sum of all shards is what is used. One box
-- that has the database alone uses shard 0.
ALTER TABLE plan_use ADD COLUMN shard BIGINT NOT NULL DEFAULT 0;
ALTER TABLE plan_use DROP CONSTRAINT plan_use_pkey;
ALTER TABLE plan_use ADD PRIMARY KEY (account_id, what, period, shard);
