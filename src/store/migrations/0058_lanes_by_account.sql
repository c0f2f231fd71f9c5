-- Lanes of one account by kind: of a stopped account some kinds go on, and very many others may be due.
CREATE INDEX lanes_by_account ON delivery_lanes (account_id, kind);
