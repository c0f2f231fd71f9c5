-- Whether a delivery only waits for its identity, which is suspended. So far the text of its response said so.
ALTER TABLE email_recipients ADD COLUMN suspended INTEGER NOT NULL DEFAULT 0;
UPDATE email_recipients SET suspended = 1 WHERE status = 'deferred' AND response IN (
  'the identity that wrote it is suspended', 'the identity that sent it is suspended');
