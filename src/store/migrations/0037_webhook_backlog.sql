-- Events whose webhook deliveries are created later, in the turn of their account; `reached` is the last webhook that has one, 0 before the first.
CREATE TABLE webhook_backlog (
  seq INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  reached INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX webhook_backlog_by_account ON webhook_backlog (account_id, seq);
DELETE FROM bookmarks WHERE name = 'webhooks, within an event';
